/**
 * Sends one transaction with the library, in a process of its own: key services are found by environment variables.
 * Arguments: the options of createFencepost and the intent, as JSON. Prints the transaction's final state.
 */
import { createFencepost } from "../../dist/index.js";

const [options = "", intent = ""] = process.argv.slice(2);
const fencepost = await createFencepost(JSON.parse(options));
const sent = await fencepost.send(JSON.parse(intent));
const { state, signer } = await sent.final();
process.stdout.write(JSON.stringify({ state, signer }));
await fencepost.close();
