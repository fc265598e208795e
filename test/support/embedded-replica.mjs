// Run by tests: a process that embeds the library, sends transactions, and prints one line of JSON per response. `node
// embedded-replica.mjs` with OPTIONS (of createFencepost), SIGNERS, COUNT and PREFIX in its environment; it runs until
// it is killed.
const { createFencepost } = await import(new URL("../../dist/index.js", import.meta.url).href);

const { OPTIONS = "{}", SIGNERS = "", COUNT = "0", PREFIX = "" } = process.env;
const fencepost = await createFencepost(JSON.parse(OPTIONS));
/** @param {unknown} line */
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
say({ ready: true, url: "", nodeId: "" });

const signers = SIGNERS.split(",");
let next = 0;
/** One of several callers, each of which sends the next request when the last one was answered. */
async function caller() {
  while (next < Number(COUNT)) {
    const index = next++;
    const payload = { to: "0x00000000000000000000000000000000000000AA", value: String(index + 1) };
    const request = { signer: signers[index % signers.length], requestId: `${PREFIX}-${index}`, payload };
    await fencepost.send(request).then(
      /** @param {{ requestId: string }} created */ ({ requestId }) => say({ sent: requestId }),
      /** @param {Error} error */ (error) => say({ failed: error.message }),
    );
  }
}
await Promise.all(Array.from({ length: 12 }, caller));
