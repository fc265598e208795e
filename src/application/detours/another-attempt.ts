/**
 * Detour: attempts that no create requested. There are three kinds. (1) Another payload at a nonce that already has
 * one: reprice, cancel, replace and placeholder all end in `signAnother`. (2) The transaction that a caller signed for
 * a nonce it reserved, or sent itself (`bind`). (3) A placeholder (a transfer of zero to the signer itself) at a nonce
 * that no transaction holds, so that the transactions above it can be mined. Also reports STUCK if the lane's lowest
 * open transaction is not mined in time. STUCK is final for the feed only: the transaction is still resent, more
 * slowly, and all its hashes are still looked up.
 *
 * Reads: for a placeholder the fee market. Writes, in one fenced transaction: the attempt with its bytes and hash,
 * TRACKING/PENDING, the right to send it (claim), the decision with its actor and reason, for a new nonce also the
 * transaction and the end of the reservation or of the hole; or STUCK and its completion (settled: false). Invariants:
 * I3 (the nonce stays with its transaction, or was this holder's alone), I6 (committed and claimed before a byte
 * leaves), I9 (never silent). A crash before the commit changes nothing; after it, the transaction is STUCK, or the
 * next owner claims the attempt again and sends it. Every older attempt is still looked up. Any other transaction at a
 * placeholder's nonce competes with the placeholder: the one that is mined decides.
 */
import { NO_DOUBT } from "../../domain/chain/doubt.ts";
import { defined } from "../../domain/defined.ts";
import { forbiddenBy } from "../../domain/errors.ts";
import { type Bounded, bounded } from "../../domain/fees/ceilings.ts";
import { withMargin } from "../../domain/fees/gas.ts";
import type { Address } from "../../domain/lane.ts";
import { boundTransaction } from "../../domain/ledger/index.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import { headStuck } from "../../domain/pace/lane-pace.ts";
import {
  committed,
  LOOK_DUE,
  laidDown,
  namedOnly,
  requestedSend,
  signedAnew,
  signedPace,
  takenInHand,
} from "../../domain/pace/transaction-pace.ts";
import type { Forbidden } from "../../domain/policy/policy.ts";
import { isPrivate, routed } from "../../domain/transaction/attempts.ts";
import { feeCap } from "../../domain/transaction/fees.ts";
import { fingerprint } from "../../domain/transaction/fingerprint.ts";
import type { Payload, PreparedIntent } from "../../domain/transaction/transaction.ts";
import type { Decision, OutcomeOf, SettleResult, Spending, Unfenced } from "../../ports/lane-store.ts";
import { type DeclaredPayload, type SignedTransaction, SigningRefused } from "../../ports/signer.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { confirmEstimate, simulateWithin } from "../chain/gas-needed.ts";
import type { LaneWork } from "../chain/work-ports.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { commitPlanned, holdAtCeiling, type LaneWriterPorts, plan, reportMove } from "../lane/lane-writer.ts";
import { forbiddenNow, spendingOf } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened, Tracked } from "../lane/tracked.ts";
import { askSigner } from "../stages/3-sign/sign.ts";

export interface AnotherPayload {
  readonly kind: "reprice" | "cancel" | "replace" | "placeholder";
  readonly unsigned: Bounded;
  /**
   * Number of the transaction's attempts when this payload was made. If more attempts exist by now, the payload is
   * outdated and must not be signed.
   */
  readonly over: number;
  /**
   * Which rules of the policies are checked: "payload": all; "cost" and "placeholder": only the limits on amounts
   * (domain/policy/policy.ts).
   */
  readonly about: Spending["about"];
  /** Maximum cost of the transaction's blobs (EIP-4844). */
  readonly blobCost?: bigint;
  /** The signed transaction, if the caller provided one. */
  readonly signed?: SignedTransaction;
  /**
   * True if the chain has private endpoints. It counts only for the first payload that we sign at a nonce for which the
   * caller itself had sent a transaction: that payload is then sent only to those endpoints. Later payloads follow the
   * newest one.
   */
  readonly privately?: boolean;
  readonly reason: string;
  /**
   * The decision of an operator or the hook, or of the caller that set `validUntil`; absent if the lane's own loop
   * decided, according to the settings.
   */
  readonly decision?: Decision;
  /** Set only for a cancel: the transaction's `validUntil` has passed. */
  readonly expires?: true;
  /**
   * Also report the transaction as STUCK, in the same commit, if it is the lane's lowest open one. A crash then never
   * leaves the attempt without the report.
   */
  readonly thenStuck?: boolean;
}

/**
 * Result of signing another payload. For any result other than "committed", nothing was written. "busy": the
 * transaction is being sent, was changed or put on hold meanwhile, or the chain's identity is unsure. "mined": it was
 * mined. Else a policy forbids the payload.
 */
type AnotherAttemptResult = "committed" | "busy" | "mined" | Forbidden;

export async function signAnother(
  ports: LanePorts,
  lane: OwnedLane,
  tx: Tracked,
  payload: AnotherPayload,
): Promise<AnotherAttemptResult> {
  // The number of attempts is compared below: otherwise, if the transaction was cancelled meanwhile, its old payload
  // could be signed again after the cancel.
  const { about, blobCost, unsigned } = payload;
  const spends = spendingOf(unsigned, about, blobCost);
  const forbidden = await forbiddenNow(ports, lane, { txId: tx.txId, spends });
  if (forbidden !== null) return forbidden;
  if (lane.pace.doubt !== NO_DOUBT) return "busy";
  if (tx.pace.inHand || tx.attempts.length !== payload.over) return "busy";
  // Keeps the sender from sending this transaction meanwhile. Otherwise a node's response to the old attempt would be
  // recorded on the new one.
  happened(tx, takenInHand);
  try {
    const signed = payload.signed ?? (await signOne(ports, lane, { ...payload.unsigned, because: payload.kind }));
    await ports.failpoint("another.signed");
    if (tx.receipt !== null) return "mined";
    // An operator put the transaction on hold meanwhile. Unless an operator requested this attempt, the signed bytes
    // are dropped and not sent.
    const isRequested = payload.decision !== undefined && payload.expires !== true;
    if (tx.held && !isRequested) return "busy";
    const { gas, fees } = payload.unsigned;
    const signedAt = { ...signed, ordinal: tx.attempts.length + 1, kind: payload.kind, gas, fees };
    const attempt = routed(signedAt, isPrivate(tx.attempts, payload.privately));
    const { kind, reason, thenStuck, decision, expires } = payload;
    const decided = defined({ decision, expires });
    const planned = [plan(tx, kind, { attempt, claim: { ordinal: attempt.ordinal }, spends, reason, ...decided })];
    if (thenStuck === true && canStick(lane, tx))
      planned.push(plan(tx, "stick", { reason, lastError: reason, ...decidedAgain(decision) }));
    await commitPlanned(ports, lane, planned);
    happened(tx, signedAnew, attempt, tx.receipt !== null);
    if (isRequested) happened(tx, requestedSend);
    for (const code of ["REFUSED_FOR_GOOD", "CANNOT_RESIGN"] as const) tx.facts.delete(code);
    lane.follow(tx);
    await ports.failpoint("another.committed");
    return "committed";
  } finally {
    happened(tx, laidDown);
    lane.broadcasting?.kick();
  }
}

/** The decision without its idempotency key, because only the action's first write stores the key. */
function decidedAgain(decision: Decision | undefined) {
  return decision === undefined ? {} : { decision: { actor: decision.actor, audit: decision.audit } };
}

async function signOne(ports: LanePorts, lane: OwnedLane, unsigned: DeclaredPayload) {
  const [signed] = await askSigner(ports, lane, [unsigned]);
  return signed as SignedTransaction;
}

/**
 * True if the transaction may be reported as STUCK: it is open, has no receipt, was not reported yet, and is not put on
 * hold by an operator.
 */
export function mayStick({ status, receipt, held }: Tracked): boolean {
  return receipt === null && status.state === "TRACKING" && status.subState !== "MINED" && !held;
}

/**
 * True if the transaction may become STUCK now. Only the lane's lowest open transaction does, because the others wait
 * for it.
 */
export function canStick(lane: OwnedLane, tx: Tracked): boolean {
  return mayStick(tx) && tx.nonce === lane.headOfLine();
}

/**
 * Reports a transaction as STUCK. Called for the lane's lowest open transaction if it cannot progress by itself;
 * operators see the given reason unchanged.
 */
export async function stick(ports: LanePorts, lane: OwnedLane, tx: Tracked, reason: string): Promise<void> {
  if (!mayStick(tx) || tx.pace.inHand) return;
  await commitPlanned(ports, lane, [plan(tx, "stick", { reason })]);
  happened(lane, headStuck, tx.nonce);
  ports.feedGrew();
  const message = `nonce ${tx.nonce} of ${lane.lane.signer} holds up its lane: ${reason}`;
  ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "TX_STUCK", message, lane: lane.lane, txId: tx.txId });
}

/**
 * Reason for STUCK: the time that the transaction has been the lane's lowest open one, then the problems found with it,
 * or if there are none the last error of a node.
 */
export function reasonOf(tx: Tracked, ageMs: number): string {
  const found = [...tx.facts.values()].map(({ text }) => text);
  const age = `not mined ${Math.round(ageMs / 1_000)} s after it came to the head of its lane`;
  const last = tx.lastError === null || found.length > 0 ? [] : [`a node last said: ${tx.lastError}`];
  return [age, ...found, ...last].join("; ");
}

/** A transfer of zero to the signer itself: the cheapest way to use up a nonce. */
export function nothing(signer: Address): Payload {
  return { to: signer, data: "0x", value: 0n };
}

const TRANSFER_GAS = 21_000n;

/**
 * Gas of a transfer of zero. More than a plain transfer only if the account has code (EIP-7702) or the chain counts
 * differently. A missing or contradicted estimate is no obstacle: a transfer that runs out of gas still uses the nonce.
 */
export async function gasOfNothing(context: ChainContext, signer: Address): Promise<bigint> {
  const { to, data, value } = nothing(signer);
  const call = { from: signer, to, data, value };
  const simulation = await simulateWithin(context, call).catch(() => null);
  if (simulation?.outcome !== "ok" || simulation.gas <= TRANSFER_GAS) return TRANSFER_GAS;
  const { gas } = simulation;
  const confirm = async () => confirmEstimate(context, call, { gas, market: await context.feeMarket(), wishes: {} });
  const isConfirmed = await confirm().then(
    () => true,
    () => false,
  );
  return isConfirmed ? withMargin(gas, { to, data }, context.gasLimits.most?.gas ?? null) : TRANSFER_GAS;
}

interface Placing extends LaneWork {
  readonly hole: Hole;
  readonly reason: string;
  readonly decision: Decision;
  /**
   * Maximum number of placeholders per hour that a lane pays for expired reservations. Absent if an operator or the
   * hook requested this placeholder.
   */
  readonly mostPerHour?: number;
}

/**
 * Fills a hole (a nonce that no transaction holds) with a placeholder. "conflict": the nonce is no longer a hole.
 * Throws FORBIDDEN if a policy or the signer does not allow it.
 */
export async function placeHolder({ ports, context, lane, hole, ...placing }: Placing): Promise<SettleResult> {
  const { signer, chainId } = lane.lane;
  const { nonce, why, reservationId } = hole;
  const payload = nothing(signer);
  const gas = await lane.term.during(gasOfNothing(context, signer));
  const { fees, reached } = await lane.term.during(context.price({}, { gas, value: payload.value }));
  const unsigned = bounded(context.ceilings, { ...payload, chainId, nonce, gas, fees, accessList: [] });
  // The placeholder's cost counts against the policy of the API key that owned the expired reservation.
  const owner = hole.expired?.owner ?? null;
  const spends = spendingOf(unsigned, "placeholder");
  const refused = await forbiddenNow(ports, lane, { spends, ...(owner === null ? {} : { owner }) });
  if (refused !== null) throw forbiddenBy(refused);
  const made = await signOne(ports, lane, { ...unsigned, because: "placeholder" }).catch(asForbidden);
  const txId = ports.entropy.uuid();
  const intent: PreparedIntent = {
    txId,
    lane: lane.lane,
    requestId: null,
    owner,
    payload,
    metadata: { placeholder: why },
    fingerprint: fingerprint(payload),
    gas,
    gasCost: gas * feeCap(fees),
  };
  const first = { ...made, ordinal: 1, kind: "placeholder", gas, fees } as const;
  const attempt = routed(first, context.chain.privateEndpoints.length > 0);
  const { reason, decision, mostPerHour } = placing;
  const isReserved = why === "expired" && reservationId !== null;
  const ending = isReserved
    ? { reservation: defined({ reservationId, becomes: "EXPIRED" as const, mostPerHour }) }
    : {};
  const { result, forbidden } = await bind(ports, lane, { nonce, reason, decision, ...ending, intent, attempt });
  if (forbidden !== undefined) throw forbiddenBy(forbidden);
  if (result !== "settled") return result;
  const tx = lane.find(txId);
  if (reached !== null && tx !== null) holdAtCeiling(ports, lane, tx, reached);
  const message = `a placeholder takes nonce ${nonce} of ${signer}: ${hole.detail}`;
  ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "HOLE_FILLED", message, lane: lane.lane, txId });
  return result;
}

/** A refusal by the signer is reported as FORBIDDEN, like a refusal by a policy: the nonce stays unfilled. */
function asForbidden(error: unknown): never {
  if (!(error instanceof SigningRefused)) throw error;
  throw forbiddenBy({ rule: "signer", detail: `the signer refused it: ${error.message}` });
}

export type Binding = Omit<Unfenced<"bind">, "kind">;

export async function bind(ports: LaneWriterPorts, lane: OwnedLane, binding: Binding): Promise<OutcomeOf<"bind">> {
  const outcome = await lane.term.write({ kind: "bind", ...binding });
  if (outcome.result !== "settled") return outcome;
  await ports.failpoint("bind.committed");
  const { createdAt, requestId } = outcome;
  const { nonce, intent } = binding;
  const tx = new Tracked(
    { txId: intent.txId, nonce, requestId, createdAt, firstSentAt: createdAt },
    boundTransaction(binding),
    paceOf(binding),
  );
  lane.track(tx);
  const txHash = binding.attempt.txHash ?? null;
  reportMove(ports, lane, { txId: tx.txId, nonce: tx.nonce, event: "sign", from: "ALLOCATED", ...tx.status, txHash });
  lane.broadcasting?.kick();
  return outcome;
}

/** An attempt without bytes is never sent, only looked up by its hash: it may be mined already. */
function paceOf({ attempt: { ordinal, rawTransaction } }: Binding) {
  const pace = signedPace(ordinal, rawTransaction);
  return rawTransaction === null ? namedOnly(pace) : committed(pace, LOOK_DUE);
}
