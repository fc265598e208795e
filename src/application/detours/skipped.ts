/**
 * Detour: nonces that the lane stepped over for nothing. A mined count above the cursor was believed (stage 2 proves it as
 * well as it can), so the nonces below it counted as used by another program. Where an endpoint lied, or a reorg took the
 * foreign transactions away, the chain waits for a nonce that no transaction holds, and everything above waits with it.
 *
 * Reads: the chain's count by the word of every endpoint that is up; one that lags is waited for. Writes: the holes, which detours/holes.ts closes
 * by policy. Invariants: I9 (never silent), I7 (two looks agree, and the database has nothing at those nonces). A crash
 * leaves nothing, or holes that every owner knows.
 */
import { countNotExceeded } from "../../domain/counts.ts";
import type { Hole } from "../../domain/holes.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { StandingHead } from "../chain/counts.ts";
import type { Working } from "../lane/activity.ts";
import type { LaneWriterPorts } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

/** How many nonces one look goes over; the lowest are closed first, and the rest found when those are mined. */
const AT_ONCE = 64;

/** Looks at the pace of stale receipts, and twice a poll interval apart where something is missing. */
export function findSkipped(ports: LaneWriterPorts, context: ChainContext, lane: OwnedLane): Working {
  const head = lane.headOfLine();
  const nowMs = ports.clock.monotonicMs();
  const memory = context.counts.of(lane.lane.signer);
  const last = memory.standing;
  if (head === null || last?.head !== head) {
    const dueMs = nowMs + context.settings.staleReceiptTimeoutMs;
    const atBlock = context.follower.head?.number ?? 0;
    memory.standing = head === null ? null : { head, atBlock, count: null, dueMs };
    return null;
  }
  return nowMs < last.dueMs || lane.cursor === null ? null : lookAgain(ports, context, lane, last);
}

async function lookAgain(
  ports: LaneWriterPorts,
  context: ChainContext,
  lane: OwnedLane,
  last: StandingHead,
): Promise<void> {
  const { head } = last;
  const nowMs = ports.clock.monotonicMs();
  const { counts, settings } = context;
  const memory = counts.of(lane.lane.signer);
  const count = countNotExceeded(await lane.term.during(counts.everywhere(lane.lane.signer, last.atBlock)));
  if (count === null) {
    memory.standing = { ...last, dueMs: nowMs + settings.pollIntervalMs };
    return;
  }
  const missing = count < head && !isHeld(lane, count);
  const again = missing && last.count !== count;
  const paceMs = again ? settings.pollIntervalMs : settings.staleReceiptTimeoutMs;
  memory.standing = { ...last, count: missing ? count : null, dueMs: nowMs + paceMs };
  if (!missing || again) return;
  const below = Math.min(head, count + AT_ONCE);
  const { holes } = await lane.term.write({ kind: "findSkipped", from: count, below });
  noteAll(ports, lane, holes);
}

/** Whether the nonce that the chain waits for is known to be somebody's here: then it is waited for, or tended, as such. */
function isHeld(lane: OwnedLane, nonce: number): boolean {
  const waits = lane.backlog.atHand.some((record) => record.nonce === nonce);
  return waits || lane.mined.has(nonce) || lane.nonces.holds(nonce);
}

function noteAll({ telemetry }: LaneWriterPorts, lane: OwnedLane, holes: readonly Hole[]): void {
  const [first] = holes;
  if (first === undefined) return;
  const message = `${holes.length} nonces of ${lane.lane.signer} from ${first.nonce} on are held by nothing: ${first.detail}`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "NONCE_DRIFT", message, lane: lane.lane });
}
