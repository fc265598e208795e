import { SignerAway } from "../../../../src/ports/signer.ts";
import type { Calm } from "./calm.ts";

const LATE_MS = 2_500;
/** The database's clock may be set, so it is read at least so often while a deadline is far away. */
const READ_EVERY_MS = 60_000;
const SOON_MS = 20_000;
const LATER_MS = 45_000;
const FAR_MS = 200_000;
/** How far that clock is set forward at a time, and how often: a lease survives it. */
const JUMP_MS = 5_000;
const STEP_MS = 4_000;

/**
 * Nothing can be signed, and deadlines pass: each transaction ends in its time by the database's clock, in whatever order
 * they were made, and also if that clock is set forward.
 */
export async function deadlines(calm: Calm): Promise<void> {
  const { world } = calm;
  const entry = await calm.start();
  entry.signer.sign = () => Promise.reject(new SignerAway("the key service is away"));
  const beganMs = calm.nowMs;
  const due = calm.inTurn([
    [LATER_MS, SOON_MS, FAR_MS],
    [FAR_MS, LATER_MS, SOON_MS],
  ]);
  const made: { readonly txId: string; readonly dueMs: number }[] = [];
  for (const ms of due) {
    const validUntil = new Date(world.clock.now().getTime() + ms).toISOString();
    const [{ txId } = { txId: "" }] = await calm.create(entry, 1, { validUntil });
    made.push({ txId, dueMs: calm.nowMs + ms });
  }
  for (const { txId, dueMs } of made
    .filter((each) => each.dueMs < beganMs + FAR_MS)
    .sort((a, b) => a.dueMs - b.dueMs)) {
    await world.until(() => calm.row(txId).subState === "EXPIRED", dueMs + LATE_MS - calm.nowMs);
    calm.expect(calm.nowMs >= dueMs, `${txId} expired in its time`);
  }
  const [far] = made.filter((each) => each.dueMs >= beganMs + FAR_MS);
  let dueMs = Number.POSITIVE_INFINITY;
  while (dueMs === Number.POSITIVE_INFINITY) {
    await world.clock.advance(STEP_MS);
    world.database.aheadMs += JUMP_MS;
    if (calm.nowMs + world.database.aheadMs >= (far?.dueMs ?? 0)) dueMs = calm.nowMs;
  }
  await world.until(() => calm.row(far?.txId ?? "").subState === "EXPIRED", READ_EVERY_MS + LATE_MS);
}
