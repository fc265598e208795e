import { type Calm, gapsOf } from "./calm.ts";

const LATE_MS = 150;
/** The first further nonce is tried within two seconds, but not at once. */
const FIRST_TRIAL_MS = { least: 900, most: 2_000 };
const STANDSTILL_MS = 60_000;
const COUNT = 5;

/**
 * A node without a pool for future nonces, and a chain that makes no block for a minute: only the lane's lowest
 * transaction is sent, and one more as a trial, less and less often. Later each follows as soon as the one before it is
 * mined.
 */
export async function futureNonces(calm: Calm): Promise<void> {
  const { world } = calm;
  world.holdBlocks();
  const entry = await calm.start();
  await calm.create(entry, COUNT);
  await world.clock.advance(STANDSTILL_MS);
  const refused = calm.sends.filter(({ answer }) => answer === "nonceTooHigh");
  const beganMs = refused[0]?.atMs ?? 0;
  const trials = refused.filter(({ atMs }) => atMs > beganMs);
  const far = trials.filter(({ nonce }) => nonce > 1).map(({ nonce }) => nonce);
  calm.expect(far.length === 0, `one nonce above the head is tried, not ${far}`);
  const pauses = gapsOf([beganMs, ...trials.map(({ atMs }) => atMs)]);
  const [first = Number.POSITIVE_INFINITY] = pauses;
  const isInTime = first >= FIRST_TRIAL_MS.least && first <= FIRST_TRIAL_MS.most + LATE_MS;
  calm.expect(isInTime, `a further nonce is tried after two seconds, not ${first} ms`);
  const isGrown = pauses.every((pause, index) => pause > (pauses[index - 2] ?? 0));
  calm.expect(isGrown, `it is tried less and less often: ${pauses}`);
  const minedAtMs = new Map<number, number>();
  world.chain.subscribe((event) => {
    if (event.type !== "block") return;
    for (const { transaction } of event.block.transactions) minedAtMs.set(transaction.nonce, calm.nowMs);
  });
  world.releaseBlocks();
  await world.allSettled(COUNT, 120_000);
  for (let nonce = 1; nonce < COUNT; nonce++) {
    const sentAtMs = calm.sends.find((sent) => sent.nonce === nonce && sent.answer === "accepted")?.atMs ?? 0;
    const lateMs = sentAtMs - (minedAtMs.get(nonce - 1) ?? 0);
    const isSoon = lateMs <= world.settings.pollIntervalMs + LATE_MS;
    calm.expect(isSoon, `nonce ${nonce} is sent ${lateMs} ms after the one before it is mined`);
  }
}
