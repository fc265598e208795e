/** A hundred payments to three nodes. Kill one of them meanwhile: the others take its signers over, and nothing is lost. */
import { asAddress, createClient } from "fencepost/client";

const { NODE_URLS, NODE_API_KEY, SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266" } = process.env;
const PAYMENTS = 100;

const fencepost = createClient({
  url: NODE_URLS?.split(",") ?? [1, 2, 3].map((n) => `http://127.0.0.1:300${n}`),
  apiKey: NODE_API_KEY,
  timeoutMs: 60_000,
});
const run = process.env.RUN ?? new Date().toISOString();
const to = "0x00000000000000000000000000000000000000AA";

const sent = [];
for (let n = 1; n <= PAYMENTS; n++) {
  sent.push(
    await fencepost.send({ signer: asAddress(SIGNER, "SIGNER"), requestId: `${run}-${n}`, payload: { to, value: 1n } }),
  );
  if (n % 10 === 0) console.log(`${n} sent`);
}
const outcomes = await Promise.all(sent.map((each) => each.final({ timeoutMs: 180_000 })));
const confirmed = outcomes.filter(({ state }) => state === "CONFIRMED").length;
const nonces = new Set(outcomes.map(({ nonce }) => nonce)).size;
console.log(`${confirmed} of ${PAYMENTS} are CONFIRMED, with ${nonces} nonces`);
