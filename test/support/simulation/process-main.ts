import { playSeeds } from "./play.ts";

/** A process that runs `count` seeds from `first` on and sends the results to its parent. */
const [first, count] = process.argv.slice(2).map(Number);
if (first === undefined || count === undefined || process.send === undefined) throw new Error("started by a test only");
// End this process if the test run is aborted.
process.on("disconnect", () => process.exit());
process.send(await playSeeds(first, count), () => process.disconnect());
