import type { Address } from "../../../../src/domain/lane.ts";
import { SIGNERS } from "../../world.ts";
import type { Calm } from "./calm.ts";

const EACH = 2;
const SOON_MS = 15_000;

/**
 * An owner dies whose sends got no answer, and the next one is not told receipts: of none, or of one that fails each
 * request for it. Nothing is sent that may be mined, and the one that fails holds up no other, nor one that comes later.
 */
export async function silentReceipts(calm: Calm): Promise<void> {
  const { world } = calm;
  let isDead = false;
  const first = await calm.start(() => (isDead ? null : { answer: "unknown", detail: "no answer" }));
  const lanes = await Promise.all(SIGNERS.map((signer) => calm.create(first, EACH, { signer })));
  const made = lanes.flat();
  world.holdBlocks();
  await world.clock.advance(1_000);
  world.crash(first);
  isDead = true;
  let isDoubted = false;
  const known = new Set(made.map(({ txId }) => txId));
  const next = await calm.start(({ txId }) => {
    if (isDoubted || known.has(txId)) return null;
    isDoubted = true;
    return { answer: "nonceConsumed", detail: "its nonce is used" };
  });
  const before = calm.sends.length;
  const [failing] = calm.row(made[0]?.txId ?? "").attempts.map(({ txHash }) => txHash);
  const isOne = calm.inTurn([true, false]);
  const end = next.faults.inject(
    { kind: "unavailable" },
    { method: "eth_getTransactionReceipt", when: (hashes) => !isOne || hashes.includes(failing) },
  );
  if (isOne) {
    const others = made.slice(1).map(({ txId }) => txId);
    const isSent = (txId: string) => calm.sends.slice(before).some((sent) => sent.txId === txId);
    await world.until(() => others.every(isSent), SOON_MS);
    const [late] = await calm.create(next, 1, { signer: SIGNERS[1] as Address });
    await world.until(() => calm.sendsOf(late?.txId ?? "").length > 1, SOON_MS);
  } else await world.clock.advance(SOON_MS);
  end();
  world.releaseBlocks();
  await world.allSettled(world.rows().length);
}
