import { playSeeds } from "./play.ts";

/** A process that plays seeds: the first one, and their number. Its parent receives the results. */
const [first, count] = process.argv.slice(2).map(Number);
if (first === undefined || count === undefined || process.send === undefined) throw new Error("started by a test only");
// A run that is broken off takes its processes along.
process.on("disconnect", () => process.exit());
process.send(await playSeeds(first, count), () => process.disconnect());
