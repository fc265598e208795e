/**
 * Detour: an operator or the hook decided that another payload takes a nonce. If the transaction is not signed yet, its
 * queued payload is changed. If it is signed, the other payload is signed too, pays enough to replace the first, and is
 * tracked beside it. An action that is repeated because its answer was lost must not be signed and paid for twice
 * (`standsAlready`, `isDone`). `resolveStuck` carries out a decision about a stuck transaction once, even if the lane
 * has a new owner by then.
 *
 * Reads: the bytes of the newest attempt, the market. Writes: a queued change (`amend`), or another attempt; the
 * decision, and STUCK or TRACKING as decided. Invariants: I3 (the nonce stays with its transaction), I6 (nothing leaves
 * before it is committed). A crash before the commit leaves the transaction unchanged, and the decision is requested
 * again; after it, the next owner signs the queued payload, or claims and sends.
 */
import { defined } from "../../domain/defined.ts";
import { FencepostError, forbiddenBy, invalid, unavailable } from "../../domain/errors.ts";
import { bounded, refuseOverCeiling } from "../../domain/fees/ceilings.ts";
import { covers, highestOffer, isBelowMarket, leastInPlaceOf, reaches } from "../../domain/fees/repricing.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import { attemptToSend, isSendable, repricedKind, sendableAttempts } from "../../domain/transaction/attempts.ts";
import {
  envelopeFor,
  type Fees,
  type FeeWishes,
  feeCap,
  isFullyPriced,
  NO_MARKET,
  priceFirstAttempt,
} from "../../domain/transaction/fees.ts";
import type { Attempt, Payload, Receipt, UnsignedTransaction } from "../../domain/transaction/transaction.ts";
import { leavesFrom, TRANSITIONS, type TransitionRule } from "../../domain/transaction/transitions.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import type { DecodedTransaction } from "../../ports/codec.ts";
import type { Decision } from "../../ports/lane-store.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import { SignerAway, SigningRefused } from "../../ports/signer.ts";
import type { LaneWork } from "../chain/work-ports.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { commitPlanned, plan } from "../lane/lane-writer.ts";
import { forbiddenNow } from "../lane/limits.ts";
import { queued } from "../lane/owned-lane.ts";
import { quietly, TermOver, unlessOver } from "../lane/term.ts";
import { decodedNewest, rebuildable, type Tracked } from "../lane/tracked.ts";
import type { Verdict } from "../requests/action.ts";
import { decodeGiven } from "../requests/normalise.ts";
import { prepare, refuseImpossibleGas } from "../stages/1-create/prepare.ts";
import { type AnotherPayload, canStick, gasOfNothing, nothing, placeHolder, signAnother } from "./another-attempt.ts";
import { changePrice, inWords, standingOffer } from "./reprice.ts";

interface PayloadChange {
  /** Kind of the new payload; `reprice` signs the current payload at another price. */
  readonly kind: AnotherPayload["kind"];
  /** The new payload, for `replace`. With `allowNoCode` it may be sent to an address without code. */
  readonly payload?: Payload;
  readonly allowNoCode?: boolean;
  /** Transaction that the caller signed, checked to belong to this nonce. */
  readonly signed?: DecodedTransaction & { readonly rawTransaction: `0x${string}` };
  /** Fees that the caller set; missing ones are taken from the market. */
  readonly fees: FeeWishes;
  readonly reason: string;
  readonly decision: Decision;
  /** Report the transaction as STUCK once the new payload is signed, if it is the lane's lowest open transaction. */
  readonly thenStuck?: boolean;
  /** Set only for `cancel`: the transaction's `validUntil` has passed. */
  readonly expires?: true;
}

/** "movedOn": the transaction is being sent or was changed meanwhile, so the caller must read it again. */
type ChangeResult = "done" | "movedOn";

interface TrackedWork extends LaneWork {
  readonly tx: Tracked;
  readonly change: PayloadChange;
}

/** Changes the payload of a transaction that has been signed. Throws CONFLICT if it was mined meanwhile. */
export async function changeTracked(work: TrackedWork): Promise<ChangeResult> {
  const { ports, context, lane, tx, change } = work;
  refuseMined(tx);
  if (tx.pace.inHand) return "movedOn";
  const over = tx.attempts.length;
  const payload = await lane.term.during(askingChain(anotherPayload(work)));
  refuseMined(tx);
  refuseImpossible(tx, payload.kind);
  const { thenStuck = false } = change;
  const privately = context.chain.privateEndpoints.length > 0;
  const another = { ...payload, over, about: judgedAs(change), privately, thenStuck, ...decided(change) } as const;
  const result = await signing(signAnother(ports, lane, tx, another));
  if (typeof result !== "string") throw forbiddenBy(result);
  if (result === "mined") refuseMined(tx);
  return result === "committed" ? "done" : "movedOn";
}

interface QueuedWork extends LaneWork {
  readonly record: TransactionRecord;
  readonly change: PayloadChange;
}

/** Changes a payload that waits to be signed: nothing is signed until the change is durable and the lane reloaded. */
export async function changeQueued(work: QueuedWork): Promise<ChangeResult> {
  const { ports, lane, record, change } = work;
  const { txId } = record;
  if (change.kind === "reprice") throw conflict(txId, "is not signed yet: its fees are set when it is signed");
  if (change.signed !== undefined) throw conflict(txId, "is not signed yet: give a payload, not a signed transaction");
  const { payload, gas, gasCost } = await lane.term.during(askingChain(queuedPayload(work)));
  const { to, data, value } = payload;
  const spends = { to, data, value, gasCost, about: judgedAs(change) } as const;
  const forbidden = await forbiddenNow(ports, lane, { txId, spends });
  if (forbidden !== null) throw forbiddenBy(forbidden);
  lane.count("amending", 1);
  try {
    if (lane.signing !== null) await lane.term.during(lane.signing.settled());
    if (lane.find(txId) !== null) return "movedOn";
    const tx = queued({ ...record, nonce: record.nonce as number });
    const amended = { kind: change.kind, payload, gas };
    await commitPlanned(ports, lane, [plan(tx, "amend", { change: amended, spends, ...decided(change) })]);
    // Reload the lane: the transaction in this node's memory still has the old payload.
    lane.term.readAgain(`${txId} is to be signed with another payload`);
    return "done";
  } finally {
    lane.count("amending", -1);
    lane.signing?.kick();
  }
}

/**
 * Kind of policy check for a change. A placeholder is checked as one, because only an operator or the hook requests
 * it. A new price for a placeholder is checked as a cost, because it may come from the transaction's owner, whose
 * limits apply.
 */
function judgedAs({ kind }: PayloadChange) {
  if (kind === "placeholder") return kind;
  return kind === "replace" ? "payload" : "cost";
}

function decided({ reason, decision, expires }: PayloadChange) {
  return defined({ reason, decision, expires });
}

async function askingChain<T>(work: Promise<T>) {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    throw unavailable("the chain does not answer, so the fees could not be set; nothing was changed", error);
  }
}

/** Converts a signer's failure: it may refuse permanently, or be unavailable until a later retry. */
async function signing<T>(work: Promise<T>) {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TermOver) throw error;
    if (error instanceof SigningRefused) {
      throw new FencepostError("CONFLICT", `the signer refused to sign the change: ${error.message}`, { cause: error });
    }
    const why = error instanceof SignerAway ? `: ${error.message}` : "";
    throw unavailable(`the signer did not sign the change${why}; read the transaction before repeating this`, error);
  }
}

async function queuedPayload(work: QueuedWork) {
  const { context, lane, record, change } = work;
  const { signer } = lane.lane;
  if (change.kind !== "replace" || change.payload === undefined) {
    const gas = await gasOfNothing(context, signer);
    refuseOverCeiling(context.ceilings, { gas, value: 0n }, change.fees);
    const { fees } = await context.price(change.fees, { gas, value: 0n });
    return { payload: { ...nothing(signer), ...change.fees }, gas, gasCost: gas * feeCap(fees) };
  }
  return prepared(work, change.payload, lane.cursor === null || record.nonce !== lane.headOfLine());
}

function prepared({ context, lane, change }: TrackedWork | QueuedWork, payload: Payload, behindPending: boolean) {
  const unnamed = { txId: "", requestId: null, owner: null, fingerprint: "0x", metadata: null } as const;
  const allowed = change.allowNoCode === true ? { allowNoCode: true as const } : {};
  const intent = { ...unnamed, ...allowed, lane: lane.lane, payload };
  return prepare(context, intent, { behindPending, laneKnown: true });
}

type Unsigned = Pick<AnotherPayload, "kind" | "unsigned" | "signed" | "blobCost">;

async function anotherPayload(work: TrackedWork): Promise<Unsigned> {
  const { ports, context, lane, tx, change } = work;
  if (change.signed !== undefined) {
    const { rawTransaction, txHash } = change.signed;
    refuseImpossibleGas(context, change.signed.unsigned);
    const blobs = blobCost(change.signed);
    const unsigned = bounded(context.ceilings, change.signed.unsigned, blobs);
    await refuseTooLittle(ports, tx, change.signed);
    return { kind: change.kind, unsigned, signed: { rawTransaction, txHash }, blobCost: blobs };
  }
  if (attemptToSend(tx.attempts)?.nodeSigned === true) {
    throw conflict(tx.txId, "is signed by the RPC node, so Fencepost cannot sign another payload for its nonce");
  }
  if (change.kind === "replace" && change.payload !== undefined) {
    const { to, data, value, accessList = [] } = change.payload;
    const { gas } = await prepared(work, change.payload, tx.nonce !== lane.headOfLine());
    return finished(work, "replace", { to, data, value, accessList, gas });
  }
  if (change.kind === "cancel" || change.kind === "placeholder") {
    const { signer } = lane.lane;
    const gas = await gasOfNothing(context, signer);
    return finished(work, change.kind, { ...nothing(signer), accessList: [], gas });
  }
  return finished(work, repricedKind(tx.attempts), await standingContent(ports, tx));
}

/** Maximum cost of a transaction's blobs, which policies count like gas. */
export function blobCost({ blobGas = 0n, blobFeeCap = 0n }: DecodedTransaction): bigint {
  return blobGas * blobFeeCap;
}

/**
 * Refuse fees too low to replace the newest attempt: no mempool would accept the new bytes, and they would keep the
 * newest attempt from being resent.
 */
async function refuseTooLittle(ports: LanePorts, tx: Tracked, { unsigned: { fees }, blobFeeCap }: DecodedTransaction) {
  const standing = { fees: standingOffer(tx), blobFeeCap: (await decodedNewest(ports, tx))?.blobFeeCap };
  const least = leastInPlaceOf(defined(standing));
  if (reaches(defined({ fees, blobFeeCap }), least)) return;
  const blobs = least.blobFeeCap === undefined ? "" : `, with blobs, and maxFeePerBlobGas ${least.blobFeeCap}`;
  throw invalid("rawTransaction", `cannot replace the newest attempt: needs ${inWords(least.fees)}${blobs}, or more`);
}

type Content = Pick<UnsignedTransaction, "to" | "data" | "value" | "gas" | "accessList">;

async function finished({ context, lane, tx, change }: TrackedWork, kind: Unsigned["kind"], content: Content) {
  const { gas, value, accessList } = content;
  const unattended = change.expires === true;
  const fees = await changePrice(context, tx, { wishes: change.fees, costs: { gas, value }, unattended });
  const named = { chainId: lane.lane.chainId, nonce: tx.nonce, fees: envelopeFor(fees, accessList) };
  return { kind, unsigned: bounded(context.ceilings, { ...content, ...named }) };
}

/** The current payload, decoded from the newest attempt. */
async function standingContent(ports: LanePorts, tx: Tracked) {
  const decoded = await decodedNewest(ports, tx);
  if (decoded === null) throw conflict(tx.txId, "was signed elsewhere: only its hash is known");
  const content = rebuildable(decoded);
  if (content !== null) return content;
  throw conflict(tx.txId, `has an ${decoded.envelope} payload: Fencepost cannot reprice it, only its own signer can`);
}

function refuseImpossible(tx: Tracked, kind: AnotherPayload["kind"]) {
  const rule: TransitionRule = TRANSITIONS[kind];
  if (rule.from.includes(tx.status.state) && leavesFrom(rule, tx.status)) return;
  throw conflict(tx.txId, `is ${tx.status.state}/${tx.status.subState ?? "-"}: ${kind} is not possible in this state`);
}

/** Throws an error that names the mined attempt if the transaction is already mined. */
export function refuseMined({ txId, receipt, attempts }: Tracked): void {
  if (receipt === null) return;
  const what = `${minedAs(receipt, attempts)}: ${receipt.txHash}`;
  throw new FencepostError("CONFLICT", `transaction ${txId} ${what}`, { txId, txHash: receipt.txHash });
}

export function minedAs({ txHash, blockNumber }: Receipt, attempts: readonly Attempt[]): string {
  const mined = attempts.find((attempt) => attempt.txHash === txHash);
  const which = mined === undefined ? "" : `, as its attempt ${mined.ordinal} (${mined.kind})`;
  return `was mined in block ${blockNumber}${which}`;
}

export function conflict(txId: string, why: string): FencepostError {
  return new FencepostError("CONFLICT", `transaction ${txId} ${why}`, { txId });
}

/** True if the newest attempt already does what the action requests. Always false for a STUCK transaction. */
export async function standsAlready(ports: LanePorts, tx: Tracked, change: PayloadChange): Promise<boolean> {
  const newest = tx.attempts.findLast(isSendable);
  if (newest === undefined || tx.attempts.length < 2 || tx.status.state !== "TRACKING") return false;
  if (!isOffered(newest.fees, change.fees, change.kind === "reprice")) return false;
  const standing = repricedKind(tx.attempts);
  if (change.kind === "cancel") return standing === "cancel" || standing === "placeholder";
  if (change.kind === "replace" && change.payload !== undefined) {
    return standing === "replace" && (await saysTheSame(ports, tx, change.payload));
  }
  return change.kind === "reprice" && Object.keys(change.fees).length > 0;
}

/** True if the attempt pays at least every fee that the action names; if `exactly`, precisely those fees. */
function isOffered(fees: Fees, wishes: FeeWishes, exactly: boolean) {
  const { type, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = wishes;
  const tip = fees.type === "eip1559" ? fees.maxPriorityFeePerGas : fees.gasPrice;
  const isCovered = (wish: bigint | undefined, offered: bigint) =>
    wish === undefined || (exactly ? wish === offered : wish <= offered);
  const isDynamic = maxFeePerGas !== undefined || maxPriorityFeePerGas !== undefined;
  if ((type !== undefined && type !== fees.type) || (isDynamic && fees.type !== "eip1559")) return false;
  if (gasPrice !== undefined && fees.type === "eip1559") return false;
  return isCovered(gasPrice ?? maxFeePerGas, feeCap(fees)) && isCovered(maxPriorityFeePerGas, tip);
}

/** True if the newest attempt has this payload's content; fields that the payload omits are not compared. */
async function saysTheSame(ports: LanePorts, tx: Tracked, payload: Payload) {
  const unsigned = (await decodedNewest(ports, tx))?.unsigned;
  if (unsigned?.to !== payload.to || unsigned.data !== payload.data || unsigned.value !== payload.value) return false;
  const { gas = unsigned.gas, accessList = unsigned.accessList } = payload;
  return gas === unsigned.gas && JSON.stringify(accessList) === JSON.stringify(unsigned.accessList);
}

interface Resolution extends LaneWork {
  readonly record: TransactionRecord;
  /** The tracked transaction; null if it waits to be signed. */
  readonly tx: Tracked | null;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly decision: Decision;
}

/** Result of a decision. "repeated": carried out before. "movedOn": the caller must read the transaction again. */
export type ResolutionResult = "applied" | "repeated" | "movedOn";

/** Returns "movedOn" if the term ended during the work: the caller then reads what was committed. */
export async function orMovedOn<T>(work: Promise<T> | null): Promise<T | "movedOn"> {
  return work === null ? "movedOn" : unlessOver(work, () => "movedOn" as const);
}

export async function resolveStuck(resolution: Resolution): Promise<ResolutionResult> {
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

/** Refuses if the decision names another nonce than would be filled now: that may be the transaction's own. */
function refuseAnotherNonce({ record, tx, verdict }: Resolution, hole: Hole | null) {
  const filled = hole?.nonce ?? tx?.nonce ?? record.nonce;
  if (verdict.nonce === undefined || verdict.nonce === filled) return;
  throw conflict(record.txId, `no longer waits for nonce ${verdict.nonce}: read the transaction before you decide`);
}

/** Fills the hole that the transaction waits for with a placeholder; the transaction keeps its own payload. */
async function fillBelow(work: Resolution, tx: Tracked, hole: Hole) {
  if ((await placeHolder({ ...work, hole })) !== "settled") {
    throw conflict(tx.txId, `no longer waits for nonce ${hole.nonce}, which is used again: read it before you decide`);
  }
  const { ports, lane, reason } = work;
  const { actor, audit } = work.decision;
  // The decision is already recorded with the placeholder, so a failure to record it on the transaction as well is
  // ignored. If it were carried out again, now that the hole is filled, it would use up the transaction's own nonce.
  await quietly(commitPlanned(ports, lane, [plan(tx, "decide", { reason, decision: { actor, audit } })]));
  return "applied" as const;
}

/** Records the decision without signing anything, and changes the state if the verdict names one. */
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

/** True if this decision was carried out already, by another owner or an earlier request. */
async function isDone({ ports, context }: LaneWork, tx: Tracked, change: PayloadChange) {
  const standing = repricedKind(tx.attempts);
  if (change.signed !== undefined) return tx.attempts.some(({ txHash }) => txHash === change.signed?.txHash);
  if (change.kind === "cancel" || change.kind === "placeholder")
    return standing === "cancel" || standing === "placeholder";
  if (change.payload !== undefined) return standing === "replace" && (await saysTheSame(ports, tx, change.payload));
  const offer = highestOffer(sendableAttempts(tx.attempts));
  if (offer === null) return false;
  if (isFullyPriced(change.fees)) return covers(offer, priceFirstAttempt(NO_MARKET, change.fees, null));
  // A reprice at the market's price counts as done while the current offer is not below the market.
  return (
    Object.keys(change.fees).length === 0 && tx.attempts.length > 1 && !isBelowMarket(offer, await context.feeMarket())
  );
}
