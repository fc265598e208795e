/**
 * Detour: compares a lane with the chain at regular intervals (`reconcile`). If the chain counts more used nonces than
 * the lane has allocated, the count is verified and the nonces are skipped. An open transaction below the chain's count
 * is investigated (stages/5-receipt/receipt.ts). Other programs' transactions in the pool at our nonces are reported,
 * and so is a low balance. After a restore or failover of the database, its nonces may be older than the network's: the
 * lane allocates none and sends nothing until its next nonce was compared (`recoverLanes`).
 *
 * Reads: counts (latest, pending, finalized), pool and balance. Writes: the lane's next nonce, upwards and with proof;
 * for `recoverLanes` also that the lane is reconciled in this epoch of the feed. Pending transactions are not changed.
 * Invariant I3. A crash leaves the lane as it was: the next owner compares in its turn.
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

/**
 * Reconciles the lanes that are due, concurrently: their requests are sent together, and values that all of them need
 * are requested once.
 */
export async function reconcile(ports: WorkPorts, context: ChainContext, lanes: readonly OwnedLane[]): Promise<void> {
  // Do not await this response, or those below, one by one: simultaneous requests are sent as one batch.
  const finalized = context.chain.head("finalized");
  finalized.catch(() => undefined);
  const trusted = await trustedOnSight(ports, context, lanes);
  const comparing = lanes.map((lane) => {
    return quietly(reconcileLane({ ports, context, lane }, trusted.has(lane) ? finalized : null));
  });
  await Promise.all(comparing);
  reportUncompared(ports, context);
}

/** Raises one alert for the whole chain, not one per lane: an endpoint that fails does so for every lane. */
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

/**
 * Compares one lane with the chain. `finalized`: the chain's finalized block; null if the chain's identity is
 * uncertain, so that only the balance is checked.
 */
async function reconcileLane(work: LaneWork, finalized: Promise<Block | null> | null) {
  const { ports, lane } = work;
  let result: ReconcileResult;
  let unanswered: string | null = null;
  try {
    [result] = await Promise.all([finalized === null ? "distrusted" : compare(work, finalized), readBalance(work)]);
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
    // Reuse the count that the check of the chain's identity has just requested.
    counts.mined(lane.signer, { atMostMs: settings.pollIntervalMs }),
    counts.pending(lane.signer, { atMostMs: 0 }),
    tagged === null ? null : counts.at(lane.signer, tagged.number),
  ]);
  // One URL may lead to several nodes at different heights. A transaction that is final on one of them counts as mined,
  // even if another has not seen it yet.
  return { latest: Math.max(latest.count, final ?? 0), pending: pending.count };
}

/**
 * Raises the lane's next nonce to the chain's count, verified as for a create, so that the next create need not do it.
 * Never lowers it.
 */
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

/** Alerts about other programs' transactions in the pool at our nonces. The transaction that is mined decides. */
async function watchPool(context: ChainContext, lane: OwnedLane) {
  const open = [...lane.unmined.values()];
  if (open.length === 0) return endForeign(context, lane, "FOREIGN_REPLACEMENT");
  const nonces = open.map(({ nonce }) => nonce);
  const pooled = await lane.term.during(context.chain.pooled(lane.lane.signer, nonces));
  // The endpoint does not list its pool, so nothing is known about the pool's transactions.
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

/** Reads the signer's balance. The node's watch (loops/stuck-watch.ts) judges it, wherever it was read. */
async function readBalance({ ports, context, lane }: LaneWork) {
  const balance = await lane.term.during(context.balance(lane.lane.signer));
  ports.telemetry.emit({ type: "signer.balance", lane: lane.lane, balance });
}

type RecoverPorts = Pick<WorkPorts, "telemetry" | "chains">;

/**
 * Maximum number of lanes compared at once: after a failover all lanes need it, which must not overload the chain's
 * endpoints.
 */
const AT_ONCE = 32;
const ANEW = { atMostMs: 0 };

/**
 * Compares the lanes whose recovery is due. If the chain cannot answer now, or the database cannot store the result,
 * the next call repeats it.
 */
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
  // One alert for all lanes was already raised when the database's history changed. Only lanes that have allocated
  // nonces get an alert of their own.
  if (suspendedBy === "HISTORY" && cursor > 0) alertWaiting(ports, lane);
  lane.signing?.kick();
  lane.broadcasting?.kick();
}

/**
 * The next nonce with which the lane may continue: its own if the chain's counts are not above it; else the mined
 * count, or the pending count if that is higher. Null if the mined count is not confirmed yet by more than half of the
 * endpoints that are up.
 */
async function provenFloor({ counts, follower }: ChainContext, lane: OwnedLane) {
  const { signer } = lane.lane;
  const [latest, pending] = await Promise.all([counts.mined(signer, ANEW), counts.pending(signer, ANEW)]);
  if (Math.max(latest.count, pending.count) <= (lane.cursor ?? 0)) return lane.cursor ?? 0;
  await counts.nextPoll();
  const again = await counts.pending(signer, ANEW);
  const answers = await counts.everywhere(signer, follower.head?.number ?? 0);
  if (judgeCount(latest.count, answers).kind !== "proved") return null;
  // A pending count may fall, because the pool drops transactions: use the lower of two readings.
  return Math.max(latest.count, Math.min(pending.count, again.count));
}

function alertWaiting({ telemetry }: RecoverPorts, { lane }: OwnedLane) {
  const message = `commits may have been lost: ${lane.signer} gives no nonce and sends nothing until an operator resumes it`;
  telemetry.emit({ type: "alert", severity: "CRITICAL", code: "LANE_AWAITS_OPERATOR", message, lane });
}
