/**
 * Detour: another payload at a nonce that already has one (reprice, cancel, replace and placeholder all end here), and STUCK for the
 * head of a lane that is not mined in time. STUCK is final for the feed only: the transaction is tracked by every hash and sent again at
 * a slower pace, and leaves the state when it is mined or repaired.
 *
 * Reads: nothing but memory. Writes, in one fenced transaction: attempt with raw bytes and hash, TRACKING/PENDING, claim, who decided
 * it and why; or STUCK and its completion (settled: false). Invariants: I3 (the nonce stays with its transaction), I6 (committed and
 * claimed before a byte leaves), I9 (never silent). A crash before the commit leaves nothing; after it, STUCK, or a claimed attempt
 * that the next owner claims again and sends. Every older attempt stays tracked: whichever is mined decides.
 */
import { NO_DOUBT } from "../../domain/chain/doubt.ts";
import { defined } from "../../domain/defined.ts";
import type { Bounded } from "../../domain/fees/ceilings.ts";
import { headStuck } from "../../domain/pace/lane-pace.ts";
import { laidDown, sendOrdered, signedAnew, takenInHand } from "../../domain/pace/transaction-pace.ts";
import type { Forbidden } from "../../domain/policy/policy.ts";
import { isPrivate, routed } from "../../domain/transaction/attempts.ts";
import type { Decision, Spending } from "../../ports/lane-store.ts";
import type { DeclaredPayload, SignedTransaction } from "../../ports/signer.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { commitPlanned, plan } from "../lane/lane-writer.ts";
import { forbiddenNow, spendingOf } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened, type Tracked } from "../lane/tracked.ts";
import { askSigner } from "../stages/3-sign/sign.ts";

export interface AnotherPayload {
  readonly kind: "reprice" | "cancel" | "replace" | "placeholder";
  readonly unsigned: Bounded;
  /** How many attempts there were when it was made: one more since then, and it was made of what is no more. */
  readonly over: number;
  /** What of it policies judge: all of it where it is another payload, else its cost. */
  readonly about: Spending["about"];
  /** EIP-4844: the most that its blobs can cost. */
  readonly blobCost?: bigint;
  /** Where the decider brought it signed. */
  readonly signed?: SignedTransaction;
  /** The chain has private endpoints: the first payload of ours at a nonce that a caller used itself goes to those alone. */
  readonly privately?: boolean;
  readonly reason: string;
  /** Absent where the lane's own loop decided by its settings. */
  readonly decision?: Decision;
  /** With a cancel: because its `validUntil` is over. */
  readonly expires?: true;
  /** Reported as STUCK in the same commit, where it is the head of the line: a crash never leaves one without the other. */
  readonly thenStuck?: boolean;
}

/**
 * But for "committed", nothing was written: the transaction moved on meanwhile, because it is being sent or was mined, or
 * a policy does not allow it.
 */
type AnotherAttemptFate = "committed" | "busy" | "mined" | Forbidden;

export async function signAnother(
  ports: LanePorts,
  lane: OwnedLane,
  tx: Tracked,
  payload: AnotherPayload,
): Promise<AnotherAttemptFate> {
  // Without the second half, a payload that was cancelled meanwhile could be signed again behind its cancel.
  const { about, blobCost, unsigned } = payload;
  const spends = spendingOf(unsigned, about, blobCost);
  const forbidden = await forbiddenNow(ports, lane, { txId: tx.txId, spends });
  if (forbidden !== null) return forbidden;
  if (lane.pace.doubt !== NO_DOUBT) return "busy";
  if (tx.pace.inHand || tx.attempts.length !== payload.over) return "busy";
  // Holds off the sender: what it is answered must be noted on the attempt it sent.
  happened(tx, takenInHand);
  try {
    const signed = payload.signed ?? (await signOne(ports, lane, { ...payload.unsigned, because: payload.kind }));
    await ports.failpoint("another.signed");
    if (tx.receipt !== null) return "mined";
    // Held back meanwhile: what an operator has not ordered is not sent, and what was signed for it never leaves.
    const isOrdered = payload.decision !== undefined && payload.expires !== true;
    if (tx.held && !isOrdered) return "busy";
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
    if (isOrdered) happened(tx, sendOrdered);
    for (const code of ["REFUSED_FOR_GOOD", "CANNOT_RESIGN"] as const) tx.facts.delete(code);
    lane.follow(tx);
    await ports.failpoint("another.committed");
    return "committed";
  } finally {
    happened(tx, laidDown);
    lane.broadcasting?.kick();
  }
}

/** The key of its order is kept with the first step. */
function decidedAgain(decision: Decision | undefined) {
  return decision === undefined ? {} : { decision: { actor: decision.actor, audit: decision.audit } };
}

export async function signOne(
  ports: LanePorts,
  lane: OwnedLane,
  unsigned: DeclaredPayload,
): Promise<SignedTransaction> {
  const [signed] = await askSigner(ports, lane, [unsigned]);
  return signed as SignedTransaction;
}

/** May be reported as STUCK: open, without a receipt, and not reported yet. What an operator holds back waits for that operator. */
export function mayStick({ status, receipt, held }: Tracked): boolean {
  return receipt === null && status.state === "TRACKING" && status.subState !== "MINED" && !held;
}

/** Only the head of a lane becomes STUCK: what is behind it waits for it. */
export function canStick(lane: OwnedLane, tx: Tracked): boolean {
  return mayStick(tx) && tx.nonce === lane.headOfLine();
}

/** Called where the head of the line cannot get on by itself; the reason is shown to people as it is. */
export async function stick(ports: LanePorts, lane: OwnedLane, tx: Tracked, reason: string): Promise<void> {
  if (!mayStick(tx) || tx.pace.inHand) return;
  await commitPlanned(ports, lane, [plan(tx, "stick", { reason })]);
  happened(lane, headStuck, tx.nonce);
  ports.feedGrew();
  const message = `nonce ${tx.nonce} of ${lane.lane.signer} holds up its lane: ${reason}`;
  ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "TX_STUCK", message, lane: lane.lane, txId: tx.txId });
}

/** The reason where age alone is what is known: what was found out on the way is said first. */
export function reasonOf(tx: Tracked, ageMs: number): string {
  const found = [...tx.facts.values()].map(({ text }) => text);
  const age = `not mined ${Math.round(ageMs / 1_000)} s after it came to the head of its lane`;
  const last = tx.lastError === null || found.length > 0 ? [] : [`a node last said: ${tx.lastError}`];
  return [age, ...found, ...last].join("; ");
}
