/**
 * Detour: carries out, once, what a hook or an operator decided about a stuck transaction. The same decision again finds
 * its own work and signs nothing more, also where the lane has another owner by then.
 *
 * Reads: the bytes that stand. Writes: the decision, with another payload where it asks for one, STUCK or TRACKING where it
 * says so. A crash before the commit leaves the decision untaken: it is asked for again; after it, the work is there.
 */

import { invalid } from "../../domain/errors.ts";
import { covers, highestOffer, isBelowMarket } from "../../domain/fees/repricing.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import { repricedKind, sendableAttempts } from "../../domain/transaction/attempts.ts";
import { isFullyPriced, NO_MARKET, priceFirstAttempt } from "../../domain/transaction/fees.ts";
import type { Decision } from "../../ports/lane-store.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { LaneWork } from "../chain/work-ports.ts";
import { commitPlanned, plan } from "../lane/lane-writer.ts";
import { queued } from "../lane/owned-lane.ts";
import { quietly, unlessOver } from "../lane/term.ts";
import type { Tracked } from "../lane/tracked.ts";
import { decodeGiven } from "../requests/normalise.ts";
import type { Verdict } from "../requests/order.ts";
import { canStick, placeHolder } from "./another-attempt.ts";
import {
  changeQueued,
  changeTracked,
  conflict,
  type PayloadChange,
  refuseMined,
  saysTheSame,
} from "./change-payload.ts";

interface Resolution extends LaneWork {
  readonly record: TransactionRecord;
  /** Null: it waits to be signed. */
  readonly tx: Tracked | null;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly decision: Decision;
}

/** "repeated": the decision was carried out before. "movedOn": look at the transaction anew. */
export type ResolutionFate = "applied" | "repeated" | "movedOn";

/** If the term ended, look at it anew: what was committed as it ended is found then. */
export async function orMovedOn<T>(work: Promise<T> | null): Promise<T | "movedOn"> {
  return work === null ? "movedOn" : unlessOver(work, () => "movedOn" as const);
}

export async function resolveStuck(resolution: Resolution): Promise<ResolutionFate> {
  const { ports, lane, tx, verdict } = resolution;
  if (tx !== null) refuseMined(tx);
  if (verdict.action === "NOOP") return decideOnly(resolution);
  const hole = verdict.action === "PLACEHOLDER" && tx !== null ? lane.holeBelow(tx.nonce) : null;
  refuseAnotherNonce(resolution, hole);
  if (hole !== null && tx !== null) return fillBelow(resolution, tx, hole);
  const change = await lane.term.during(changeOf(resolution));
  if (tx === null) return (await changeQueued({ ...resolution, change })) === "done" ? "applied" : "movedOn";
  if (await lane.term.during(isDone(resolution, tx, change))) return "repeated";
  if ((await changeTracked({ ...resolution, tx, change })) === "movedOn") return "movedOn";
  if (tx.status.state === "STUCK") ports.feedGrew();
  return "applied";
}

/** Filled or moved meanwhile: the same decision would use up the nonce of a transaction that nobody meant to give up. */
function refuseAnotherNonce({ record, tx, verdict }: Resolution, hole: Hole | null) {
  const filled = hole?.nonce ?? tx?.nonce ?? record.nonce;
  if (verdict.nonce === undefined || verdict.nonce === filled) return;
  throw conflict(record.txId, `waits for nonce ${verdict.nonce} no more: look at it before you decide`);
}

/** The transaction waits for a nonce below it that nothing holds: that one is filled, and its own payload stays. */
async function fillBelow(work: Resolution, tx: Tracked, hole: Hole) {
  if ((await placeHolder({ ...work, hole })) !== "settled") {
    throw conflict(tx.txId, `waits for nonce ${hole.nonce} no more, which is held again: look at it before you decide`);
  }
  const { ports, lane, reason } = work;
  const { actor, audit } = work.decision;
  // The placeholder keeps who decided it, also if it cannot be noted here: looked at anew, with no hole below it any more, the same
  // decision would be for the transaction's own nonce.
  await quietly(commitPlanned(ports, lane, [plan(tx, "decide", { reason, decision: { actor, audit } })]));
  return "applied" as const;
}

/** Signs nothing. The decision is kept, and the state follows if the verdict names one. */
async function decideOnly({ ports, lane, record, tx, verdict, reason, decision }: Resolution) {
  const decided = { reason, decision };
  if (tx !== null && verdict.afterwards === "stuck" && canStick(lane, tx)) {
    await commitPlanned(ports, lane, [plan(tx, "stick", { ...decided, lastError: reason })]);
    ports.feedGrew();
    return "applied" as const;
  }
  const moved = tx ?? queued({ ...record, nonce: record.nonce as number });
  const leaves = moved.status.state === "STUCK" && verdict.afterwards === "track";
  await commitPlanned(ports, lane, [plan(moved, leaves ? "unstick" : "decide", decided)]);
  return "applied" as const;
}

const KINDS = { CANCEL: "cancel", PLACEHOLDER: "placeholder", REPLACE: "replace" } as const;

async function changeOf({ ports, verdict, reason, decision, record, lane }: Resolution): Promise<PayloadChange> {
  const { action, payload, allowNoCode, fees, rawTransaction, afterwards } = verdict;
  const common = { fees, reason, decision, allowNoCode, thenStuck: afterwards === "stuck" };
  if (rawTransaction !== undefined) {
    const decoded = await decodeGiven(ports.codec, rawTransaction, (why) => invalid("rawTransaction", why));
    const { chainId, nonce } = decoded.unsigned;
    const fits = decoded.signer === lane.lane.signer && chainId === lane.lane.chainId && nonce === record.nonce;
    if (!fits) throw invalid("rawTransaction", "is not signed for this signer, chain and nonce");
    return { ...common, kind: "replace", signed: { ...decoded, rawTransaction } };
  }
  if (action === "REPLACE" && payload === undefined) return { ...common, kind: "reprice" };
  const kind = KINDS[action as keyof typeof KINDS];
  return { ...common, kind, ...(payload === undefined ? {} : { payload }) };
}

/** Whether this very decision stands already: another owner, or an earlier asking, has carried it out. */
async function isDone({ ports, context }: LaneWork, tx: Tracked, change: PayloadChange) {
  const standing = repricedKind(tx.attempts);
  if (change.signed !== undefined) return tx.attempts.some(({ txHash }) => txHash === change.signed?.txHash);
  if (change.kind === "cancel" || change.kind === "placeholder")
    return standing === "cancel" || standing === "placeholder";
  if (change.payload !== undefined) return standing === "replace" && (await saysTheSame(ports, tx, change.payload));
  const offer = highestOffer(sendableAttempts(tx.attempts));
  if (offer === null) return false;
  if (isFullyPriced(change.fees)) return covers(offer, priceFirstAttempt(NO_MARKET, change.fees, null));
  // "At the market's price": done while it is not below that.
  return (
    Object.keys(change.fees).length === 0 && tx.attempts.length > 1 && !isBelowMarket(offer, await context.feeMarket())
  );
}
