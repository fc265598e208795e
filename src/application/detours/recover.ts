/**
 * A lane after the database's history changed. What the database says of its nonces may be older than what the network
 * knows, so the lane gives none and sends nothing until its cursor has been compared with the chain: mined and pending.
 *
 * Reads: the chain's two counts, again a poll interval later where one is above the cursor. Writes: the cursor, and that
 * the lane is reconciled in this epoch of the feed. Invariant I3. A crash leaves the lane as it was; the next owner asks.
 */
import { judgeCount } from "../../domain/chain/counts.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { WorkPorts } from "../chain/work-ports.ts";
import { sideBySide } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

type RecoverPorts = Pick<WorkPorts, "telemetry" | "chains">;

/** After a failover all lanes ask at once; the chain is not to feel it. */
const AT_ONCE = 32;
const ANEW = { atMostMs: 0 };

/** Those that owe it. What the chain cannot tell now, or the database cannot store, is asked again with the next call. */
export async function recoverLanes(ports: RecoverPorts, lanes: readonly OwnedLane[]): Promise<void> {
  const owing = lanes.filter((lane) => !lane.ledger.reconciled);
  await sideBySide(owing, AT_ONCE, (lane) => reconcile(ports, lane).catch(() => undefined));
}

async function reconcile(ports: RecoverPorts, lane: OwnedLane) {
  const context = ports.chains.get(lane.lane.chainId);
  if (context === undefined) return;
  const floor = await lane.term.during(provenFloor(context, lane));
  if (floor === null) return;
  const from = lane.cursor;
  const { cursor, suspendedBy } = await lane.term.write({ kind: "reconcile", floor });
  const { token } = lane.fence;
  ports.telemetry.emit({ type: "lane.recovered", lane: lane.lane, token, from, cursor, suspendedBy });
  // That all wait was told when the epoch began; here, those that somebody may miss.
  if (suspendedBy === "HISTORY" && cursor > 0) alertWaiting(ports, lane);
  lane.signing?.kick();
  lane.broadcasting?.kick();
}

/** Null: the endpoints do not agree on a count above the cursor yet, or one that is up has not come so far. */
async function provenFloor({ counts, follower }: ChainContext, lane: OwnedLane) {
  const { signer } = lane.lane;
  const [latest, pending] = await Promise.all([counts.mined(signer, ANEW), counts.pending(signer, ANEW)]);
  if (Math.max(latest.count, pending.count) <= (lane.cursor ?? 0)) return lane.cursor ?? 0;
  await counts.nextPoll();
  const again = await counts.pending(signer, ANEW);
  const answers = await counts.everywhere(signer, follower.head?.number ?? 0);
  if (judgeCount(latest.count, answers).kind !== "proved") return null;
  // A pending count may fall: what was pending was dropped. What stands in both readings is there.
  return Math.max(latest.count, Math.min(pending.count, again.count));
}

function alertWaiting({ telemetry }: RecoverPorts, { lane }: OwnedLane) {
  const message = `commits may have been lost: ${lane.signer} gives no nonce and sends nothing until an operator resumes it`;
  telemetry.emit({ type: "alert", severity: "CRITICAL", code: "LANE_AWAITS_OPERATOR", message, lane });
}
