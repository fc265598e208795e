/**
 * Detour: a lane is compared with the chain, regularly and without a reason (`reconcile`). What the chain counts beyond our cursor is
 * proved and stepped over; what it counts beyond an open transaction is looked into (stages/5-receipt/receipt.ts); transactions in the
 * pool at our nonces that are not ours are reported, and so is a low balance. After the database's history changed, a lane's nonces in
 * the database may be older than the network's: the lane gives none and sends nothing until its cursor was compared (`recoverLanes`).
 *
 * Reads: counts (latest, pending, finalized), pool and balance. Writes: the cursor, upwards and with proof; for `recoverLanes` also that
 * the lane is reconciled in this epoch of the feed. Nothing that is pending is touched. Invariant I3. A crash leaves the lane as it was:
 * the next owner compares in its turn.
 */

import { judgeCount } from "../../domain/chain/counts.ts";
import { FencepostError } from "../../domain/errors.ts";
import { batchFailed, countReported } from "../../domain/pace/count-events.ts";
import { compared } from "../../domain/pace/lane-pace.ts";
import { type Block, ChainUnavailable } from "../../ports/chain.ts";
import type { ReconcileResult } from "../../ports/telemetry.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { trustedOnSight } from "../chain/trust.ts";
import type { LaneWork, WorkPorts } from "../chain/work-ports.ts";
import { sideBySide } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { quietly } from "../lane/term.ts";
import { happened } from "../lane/tracked.ts";
import { nonceFloor } from "../stages/2-allocate/allocate.ts";

/** Lanes whose turn has come, side by side: their questions leave together, and what is the same for all is asked once. */
export async function reconcile(ports: WorkPorts, context: ChainContext, lanes: readonly OwnedLane[]): Promise<void> {
  // Asked together, here and below: what is asked in one moment is one request.
  const finalized = context.chain.head("finalized");
  finalized.catch(() => undefined);
  const trusted = await trustedOnSight(ports, context, lanes);
  const comparing = lanes.map((lane) => {
    return quietly(reconcileLane({ ports, context, lane }, trusted.has(lane) ? finalized : null));
  });
  await Promise.all(comparing);
  reportUncompared(ports, context);
}

/** One for the chain: an endpoint that fails does so for every lane, and a thousand alarms say no more than one. */
function reportUncompared({ lanesOf }: WorkPorts, { chain: { chainId }, standing }: ChainContext) {
  const uncompared = lanesOf(chainId).filter(({ pace }) => pace.uncompared !== null);
  const [first] = uncompared;
  const code = "RECONCILIATION_FAILED";
  if (first === undefined) {
    standing.resolve({ code, chainId }, `every lane of chain ${chainId} was compared with it`);
    return;
  }
  const message = `${uncompared.length} lanes of chain ${chainId} could not be compared with it; the first: ${first.lane.signer}: ${first.pace.uncompared}`;
  standing.raise({ severity: "CRITICAL", code, message, chainId });
}

/** `finalized`: the chain's finalized block; null: the chain is not trusted, and nothing is compared with it. */
async function reconcileLane(work: LaneWork, finalized: Promise<Block | null> | null) {
  const { ports, lane } = work;
  let result: ReconcileResult;
  let unanswered: string | null = null;
  try {
    [result] = await Promise.all([finalized === null ? "distrusted" : compare(work, finalized), watchBalance(work)]);
  } catch (error) {
    if (!isUnanswered(error)) throw error;
    result = "unavailable";
    unanswered = error.message;
  }
  happened(lane, compared, unanswered);
  ports.telemetry.emit({ type: "lane.reconciled", lane: lane.lane, result });
}

function isUnanswered(error: unknown): error is Error {
  return error instanceof ChainUnavailable || (error instanceof FencepostError && error.code === "UNAVAILABLE");
}

async function compare(work: LaneWork, finalized: Promise<Block | null>) {
  const { ports, context, lane } = work;
  const { latest, pending } = await lane.term.during(countAll(work, finalized));
  happened(lane, countReported, latest, lane.cursor);
  await watchPool(context, lane);
  const { cursor } = lane;
  if (cursor === null) return "agreed";
  if (pending <= cursor) endForeign(context, lane, "FOREIGN_PENDING");
  if (latest > cursor) return alignTo(work);
  if (pending <= cursor) return "agreed";
  ports.telemetry.emit({ type: "nonce.drift", lane: lane.lane, cursor, chainCount: pending, proved: false });
  const message = `${pending - cursor} transactions of ${lane.lane.signer} wait in a pool that are not ours`;
  context.standing.raise({ severity: "WARNING", code: "FOREIGN_PENDING", message, lane: lane.lane });
  return context.settings.nonceChainQuery === "pending" ? alignTo(work) : "drift";
}

async function countAll({ context, lane: { lane } }: LaneWork, finalized: Promise<Block | null>) {
  const { counts, settings } = context;
  const tagged = await finalized;
  const [latest, pending, final] = await Promise.all([
    // The trust in the chain was checked a moment ago, by a count that serves here too.
    counts.mined(lane.signer, { atMostMs: settings.pollIntervalMs }),
    counts.pending(lane.signer, { atMostMs: 0 }),
    tagged === null ? null : counts.at(lane.signer, tagged.number),
  ]);
  // Behind one URL may be endpoints of different heights: what is final for one is mined, whatever another has seen.
  return { latest: Math.max(latest.count, final ?? 0), pending: pending.count };
}

/** Proved as for a create, so that creates find it done. Never down. */
async function alignTo({ ports, context, lane }: LaneWork) {
  happened(lane, batchFailed);
  const floor = await lane.term.during(nonceFloor(ports, context, lane));
  if (floor === null) return "drift";
  await lane.term.write({ kind: "align", floor });
  return "aligned";
}

type Foreign = "FOREIGN_PENDING" | "FOREIGN_REPLACEMENT";

function endForeign({ standing }: ChainContext, { lane }: OwnedLane, code: Foreign) {
  standing.resolve({ code, lane }, `nothing that is not ours waits in the pool for ${lane.signer} any more`);
}

/** Another payload at one of our nonces that we did not sign: the one that is mined decides, and people are alerted. */
async function watchPool(context: ChainContext, lane: OwnedLane) {
  const open = [...lane.unmined.values()];
  if (open.length === 0) return endForeign(context, lane, "FOREIGN_REPLACEMENT");
  const nonces = open.map(({ nonce }) => nonce);
  const pooled = await lane.term.during(context.chain.pooled(lane.lane.signer, nonces));
  // An endpoint that shows no pool says nothing about it.
  if (pooled === null) return;
  const foreign = open.flatMap(({ txId, nonce, attempts }, index) => {
    const hash = pooled[index] ?? null;
    return hash === null || attempts.some(({ txHash }) => txHash === hash) ? [] : [{ txId, nonce, hash }];
  });
  const [first] = foreign;
  if (first === undefined) return endForeign(context, lane, "FOREIGN_REPLACEMENT");
  const { txId, nonce, hash } = first;
  const others = foreign.length === 1 ? "" : `, and ${foreign.length - 1} more at others of its nonces`;
  const message = `${hash}, which is not ours, waits in the pool at nonce ${nonce} of ${lane.lane.signer}${others}`;
  context.standing.raise({ severity: "WARNING", code: "FOREIGN_REPLACEMENT", message, lane: lane.lane, txId });
}

async function watchBalance({ ports, context, lane }: LaneWork) {
  const { alertLowBalanceWei: threshold } = context.settings;
  const { signer, chainId } = lane.lane;
  const balance = await lane.term.during(context.balance(signer));
  ports.telemetry.emit({ type: "signer.balance", lane: lane.lane, balance });
  const holds = `${signer} holds ${balance} wei on chain ${chainId}`;
  const low = { code: "LOW_BALANCE", lane: lane.lane } as const;
  const isLow = threshold !== null && balance < threshold;
  if (isLow) context.standing.raise({ severity: "WARNING", ...low, message: `${holds}, less than ${threshold}` });
  else context.standing.resolve(low, holds);
}

type RecoverPorts = Pick<WorkPorts, "telemetry" | "chains">;

/** After a failover all lanes ask at once; that must not overload the chain's endpoints. */
const AT_ONCE = 32;
const ANEW = { atMostMs: 0 };

/** Lanes that owe it. If the chain cannot answer now, or the database cannot store it, the next call repeats it. */
export async function recoverLanes(ports: RecoverPorts, lanes: readonly OwnedLane[]): Promise<void> {
  const owing = lanes.filter((lane) => !lane.ledger.reconciled);
  await sideBySide(owing, AT_ONCE, (lane) => recoverLane(ports, lane).catch(() => undefined));
}

async function recoverLane(ports: RecoverPorts, lane: OwnedLane) {
  const context = ports.chains.get(lane.lane.chainId);
  if (context === undefined) return;
  const floor = await lane.term.during(provenFloor(context, lane));
  if (floor === null) return;
  const from = lane.cursor;
  const { cursor, suspendedBy } = await lane.term.write({ kind: "reconcile", floor });
  const { token } = lane.fence;
  ports.telemetry.emit({ type: "lane.recovered", lane: lane.lane, token, from, cursor, suspendedBy });
  // The alert about all lanes came with the epoch; here only the lanes that may be missed.
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
  // A pending count may fall, because the pool drops transactions. A value in both readings is real.
  return Math.max(latest.count, Math.min(pending.count, again.count));
}

function alertWaiting({ telemetry }: RecoverPorts, { lane }: OwnedLane) {
  const message = `commits may have been lost: ${lane.signer} gives no nonce and sends nothing until an operator resumes it`;
  telemetry.emit({ type: "alert", severity: "CRITICAL", code: "LANE_AWAITS_OPERATOR", message, lane });
}
