/**
 * Detour: a transaction whose deadline (`validUntil`) has passed before it was mined. If none of its payloads was ever
 * signed, it ends at once and gives up its nonce. Otherwise a cancel uses the nonce; it is made once, and priced, sent
 * and repriced like an operator's cancel. The payload that is mined decides.
 *
 * Reads: the database, whose clock decides. Writes: FAILED_FINAL/EXPIRED without a nonce, or a cancel with its claim.
 * Invariants: I3 (only an unsigned transaction gives up its nonce), I9 (not below anything that may have left), I7 (a
 * lane whose past is in doubt gives up nothing). A crash leaves the row unchanged, or expired: the next owner asks the
 * database again.
 */

import { FencepostError } from "../../domain/errors.ts";
import {
  cancelPutOff,
  expiryAhead,
  expiryAsked,
  expiryLookDue,
  isExpiryLookOwed,
  overdueDone,
  overdueNow,
  overdueSeen,
} from "../../domain/pace/lane-time.ts";
import { isDue } from "../../domain/pace/when.ts";
import { repricedKind } from "../../domain/transaction/attempts.ts";
import type { ExpiringRecord } from "../../ports/lane-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { LaneWork } from "../chain/work-ports.ts";
import type { Working } from "../lane/activity.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { commitPlanned, hold, plan } from "../lane/lane-writer.ts";
import { type OwnedLane, queued, type Tracked } from "../lane/owned-lane.ts";
import { happened } from "../lane/tracked.ts";
import { changeQueued, changeTracked } from "./change-payload.ts";

const AT_ONCE = 200;
const BUSY_MS = 250;
const SILENT_MS = 5_000;
/**
 * Pause in ms before a refused cancel is tried again. It was refused because of a fee ceiling, a policy, or a key that
 * the chain node holds, and may be allowed later.
 */
const REFUSED_MS = 60_000;

/**
 * Expires transactions that were never sent. Needs only the database, so it works while the chain does not answer or
 * the lane is suspended.
 */
export function expireUnsent(ports: LanePorts, lane: OwnedLane): Working {
  if (lane.pace.overdue.size > 0) lane.tending?.kick();
  if (lane.heldByHistory || !isDue(lane.pace.expiry, ports.clock.monotonicMs())) return null;
  return isExpiryLookOwed(lane.pace) ? expireFirst(ports, lane) : expireDue(ports, lane);
}

/**
 * Expires transactions that were never signed. No transaction of the lane is signed until the database has answered.
 */
async function expireFirst(ports: LanePorts, lane: OwnedLane) {
  lane.count("amending", 1);
  try {
    await expireDue(ports, lane);
  } finally {
    lane.count("amending", -1);
    lane.signing?.kick();
  }
}

async function expireDue(ports: LanePorts, lane: OwnedLane) {
  const { clock, store } = ports;
  // Mark the deadline check as done before the read, not after it. A transaction that gets its nonce during the read
  // schedules a check for its own deadline, and that schedule must not be cleared.
  happened(lane, expiryAsked);
  const most = AT_ONCE + lane.pace.overdue.size;
  const rows = await lane.term.during(store.loadExpiring(lane.lane, most));
  const over = rows.filter(({ leftMs }) => leftMs <= 0);
  const next = rows[over.length];
  if (next !== undefined) happened(lane, expiryAhead, clock.monotonicMs(), next.leftMs);
  const unsent = over.filter((row) => isUnsent(lane, row));
  const sent = over.flatMap((row) => (unsent.includes(row) ? [] : [row.txId]));
  happened(lane, overdueSeen, sent);
  if (sent.length > 0) {
    happened(lane, expiryAhead, clock.monotonicMs(), REFUSED_MS);
    lane.tending?.kick();
  }
  if (unsent.length > 0) await giveBack(ports, lane, unsent);
  if (rows.length === most && unsent.length > 0) happened(lane, expiryLookDue);
}

/**
 * True if the transaction may end and give up its nonce: neither the database nor this node's memory shows a signature
 * for it, and all transactions above it may move down.
 */
function isUnsent(lane: OwnedLane, { txId, nonce, mayGiveUp }: ExpiringRecord) {
  if (!mayGiveUp || lane.find(txId) !== null) return false;
  if (lane.holders().some((holder) => holder.nonce > nonce && !holder.movable)) return false;
  for (const [above] of lane.ledger.reserved.known(nonce)) if (above > nonce) return false;
  return true;
}

async function giveBack(ports: LanePorts, lane: OwnedLane, unsent: readonly ExpiringRecord[]) {
  // Remove the transactions from memory's list of unsigned ones before the write, so that a signature in progress is
  // not committed after the expiry.
  lane.backlog.drop(...unsent);
  const planned = unsent.map((row) => {
    const reason = `nothing of it was signed when its validUntil, ${row.validUntil.toISOString()}, was over`;
    return plan(queued(row), "expire", { reason, lastError: reason });
  });
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("lapse.committed");
  ports.feedGrew();
  lane.signing?.kick();
}

/**
 * Cancels expired transactions that may have been sent. They wait while the lane is suspended or killed, or the chain's
 * identity is uncertain, because nothing is sent for the lane then.
 */
export function cancelExpired(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  if (lane.pace.overdue.size === 0 || lane.held) return null;
  const due = overdueNow(lane.pace, ports.clock.monotonicMs());
  return due.length === 0 ? null : cancelEach({ ports, context, lane }, due);
}

async function cancelEach(work: LaneWork, due: readonly string[]) {
  const { ports, lane } = work;
  for (const txId of due) {
    if (lane.held) return;
    const nextMs = await cancelOne(work, txId);
    if (nextMs === null) happened(lane, overdueDone, txId);
    else happened(lane, cancelPutOff, txId, ports.clock.monotonicMs() + nextMs);
  }
}

/**
 * Cancels one expired transaction. Returns null if nothing more is to be done, else the pause in ms before the next
 * try.
 */
async function cancelOne(work: LaneWork, txId: string) {
  const { ports, lane } = work;
  const tx = lane.find(txId);
  try {
    const result = await (tx === null ? cancelQueued(work, txId) : cancelSent(work, tx));
    return result === "done" ? null : BUSY_MS;
  } catch (error) {
    if (!(error instanceof FencepostError)) throw error;
    if (error.code === "UNAVAILABLE") return SILENT_MS;
    if (tx === null) return REFUSED_MS;
    if (tx.receipt !== null) return null;
    const code = error.code === "FORBIDDEN" ? "POLICY_LIMIT_REACHED" : "CANNOT_RESIGN";
    hold(ports, lane, tx, { code, text: `its validUntil is over, and it cannot be cancelled: ${error.message}` });
    return REFUSED_MS;
  }
}

function cancelSent(work: LaneWork, tx: Tracked) {
  const standing = repricedKind(tx.attempts);
  // There is nothing to cancel: the transaction is mined, already cancelled, or put on hold. If it is on hold, its
  // deadline is checked again when it is released.
  if (tx.receipt !== null || tx.held || tx.expired || standing === "cancel" || standing === "placeholder")
    return "done";
  return changeTracked({ ...work, tx, change: cancelBy(tx.validUntil) });
}

async function cancelQueued(work: LaneWork, txId: string) {
  const record = await work.lane.term.during(work.ports.store.transaction(txId));
  if (record?.state !== "ALLOCATED" || record.expiredAt !== undefined) return "done";
  return changeQueued({ ...work, record, change: cancelBy(record.validUntil) });
}

function cancelBy(validUntil: Date | null | undefined) {
  const until = validUntil?.toISOString();
  const decision = { actor: "caller", audit: { action: "CANCEL", validUntil: until } };
  return { kind: "cancel", fees: {}, reason: `its validUntil, ${until}, is over`, decision, expires: true } as const;
}
