/**
 * Sends transactions with the library, in a process of its own: key services are found by environment variables.
 * Argument: pairs of createFencepost's options and an intent, as JSON. Prints the final states, in the same order.
 */
import { createFencepost } from "../../dist/index.js";

const [sends = "[]"] = process.argv.slice(2);
const final = [];
for (const { options, intent } of JSON.parse(sends)) {
  const fencepost = await createFencepost(options);
  const sent = await fencepost.send(intent);
  const { state, signer } = await sent.final();
  final.push({ state, signer });
  await fencepost.close();
}
process.stdout.write(JSON.stringify(final));
