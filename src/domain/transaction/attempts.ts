import type { Hash } from "../lane.ts";
import type { Attempt } from "./transaction.ts";

type Superseding = "cancel" | "replace" | "placeholder";

/**
 * True for a payload that takes the place of the caller's (a cancel, a replacement, a placeholder). Once it is
 * committed, no older payload is sent again.
 */
function supersedes(attempt: Attempt): attempt is Attempt & { readonly kind: Superseding } {
  return attempt.kind === "cancel" || attempt.kind === "replace" || attempt.kind === "placeholder";
}

/**
 * Kind of a payload that is signed again at another price. A cancel, replacement or placeholder keeps its kind: a
 * cancel at a higher price is still a cancel.
 */
export function repricedKind(attempts: readonly Attempt[]): "reprice" | Superseding {
  return attempts.findLast(supersedes)?.kind ?? "reprice";
}

/** True if this node has the attempt's bytes and knows its price. */
export function isSendable({ kind, foreign }: Attempt): boolean {
  return kind !== "external" && foreign !== true;
}

/**
 * True if the transaction and all its further payloads may be sent to private endpoints only, until an operator or a
 * timeout makes it public. `first`: the result if nothing was signed yet.
 */
export function isPrivate(attempts: readonly Attempt[], first = false): boolean {
  const newest = attempts.findLast(isSendable);
  return newest === undefined ? first : newest.private === true;
}

/**
 * Marks an attempt as private. The mark is committed together with the right to send it, so that the lane's next owner
 * sends the attempt to the same kind of endpoint.
 */
export function routed<A extends Attempt>(attempt: A, privately: boolean): A {
  return privately ? { ...attempt, private: true } : attempt;
}

/**
 * True if only hashes of the attempts are known, because another program sent them or a caller gave only the hash:
 * nothing can be sent or repriced.
 */
export function isHashAlone(attempts: readonly Attempt[]): boolean {
  return attempts.length > 0 && !attempts.some(isSendable);
}

/**
 * Attempts that may still be sent, oldest first. Attempts older than the last cancel, replacement or placeholder are
 * left out.
 */
export function sendableAttempts(attempts: readonly Attempt[]): readonly Attempt[] {
  const sendable = attempts.filter(isSendable);
  return sendable.slice(Math.max(0, sendable.findLastIndex(supersedes)));
}

/** Known hashes of the attempts. */
export function hashesOf(attempts: readonly Attempt[]): readonly Hash[] {
  return attempts.flatMap(({ txHash }) => txHash ?? []);
}

/**
 * The attempt to send next: the newest one. But if a receipt was withdrawn after a reorg, the attempt of that receipt
 * is sent, because the new branch may lack it. Null if there are no bytes to send.
 */
export function attemptToSend(attempts: readonly Attempt[], withdrawn: Hash | null = null): Attempt | null {
  const sendable = sendableAttempts(attempts);
  return sendable.find(({ txHash }) => txHash !== null && txHash === withdrawn) ?? sendable.at(-1) ?? null;
}
