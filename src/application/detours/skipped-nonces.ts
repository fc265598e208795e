/**
 * Detour: nonces that a lane skipped by mistake, because an endpoint wrongly reported them as used, or a reorg removed
 * what another program had sent. The chain waits for the lowest of them, and every higher nonce waits too.
 *
 * Reads: the lane's lowest open transaction, the mined counts of all endpoints. Writes: the skipped nonces as holes
 * (`findSkipped`), which holes.ts then closes or reports. Invariants: I7 (more than half of the endpoints must confirm
 * the count; if too many lag, it is read again later), I9 (never silent). A crash loses only the first of two checks.
 */
import { countNotExceeded } from "../../domain/chain/counts.ts";
import { headStands } from "../../domain/pace/count-events.ts";
import type { StandingHead } from "../../domain/pace/lane-pace.ts";
import type { LaneWork } from "../chain/work-ports.ts";
import type { Working } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened } from "../lane/tracked.ts";

/** Maximum number of nonces checked at once. The lowest ones block all others; the rest are found later. */
export const NONCES_AT_ONCE = 64;

/**
 * Looks for nonces that the lane skipped. If the chain's mined count is above the lane's next nonce, the nonces in
 * between count as used by another program, and the next nonce moves up (stage 2 checks the count as well as it can).
 * Checks are as frequent as those of stale receipts, or a poll interval apart if a nonce is missing: two checks must
 * agree, and the database must have no transaction at those nonces.
 */
export function findSkipped(work: LaneWork): Working {
  const { ports, context, lane } = work;
  const head = lane.headOfLine();
  const nowMs = ports.clock.monotonicMs();
  const last = lane.pace.counts.standing;
  if (head === null || last?.head !== head) {
    const dueMs = nowMs + context.settings.staleReceiptTimeoutMs;
    const atBlock = context.follower.head?.number ?? 0;
    if (last !== null || head !== null) {
      happened(lane, headStands, head === null ? null : { head, atBlock, count: null, dueMs });
    }
    return null;
  }
  return nowMs < last.dueMs || lane.cursor === null ? null : lookAgain(work, last);
}

async function lookAgain({ ports, context, lane }: LaneWork, last: StandingHead) {
  const { head } = last;
  const nowMs = ports.clock.monotonicMs();
  const { counts, settings } = context;
  const count = countNotExceeded(await lane.term.during(counts.everywhere(lane.lane.signer, last.atBlock)));
  if (count === null) {
    happened(lane, headStands, { ...last, dueMs: nowMs + settings.pollIntervalMs });
    return;
  }
  const missing = count < head && !isHeld(lane, count);
  const again = missing && last.count !== count;
  const paceMs = again ? settings.pollIntervalMs : settings.staleReceiptTimeoutMs;
  happened(lane, headStands, { ...last, count: missing ? count : null, dueMs: nowMs + paceMs });
  if (!missing || again) return;
  const below = Math.min(head, count + NONCES_AT_ONCE);
  const { holes } = await lane.term.write({ kind: "findSkipped", from: count, below });
  const [first] = holes;
  if (first === undefined) return;
  const message = `${holes.length} nonces of ${lane.lane.signer} from ${first.nonce} on are held by nothing: ${first.detail}`;
  ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "NONCE_DRIFT", message, lane: lane.lane });
}

/**
 * True if a transaction, reservation or hole of this lane is at the nonce that the chain waits for; then it is handled
 * normally.
 */
function isHeld({ backlog, mined, nonces }: OwnedLane, nonce: number) {
  return backlog.atHand.some((record) => record.nonce === nonce) || mined.has(nonce) || nonces.holds(nonce);
}
