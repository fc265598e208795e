import type { Hash } from "./lane.ts";
import type { Attempt } from "./transaction.ts";

type Superseding = "cancel" | "replace" | "placeholder";

/** A payload that takes the caller's off the table: once it is committed, nothing older is sent again. */
function supersedes(attempt: Attempt): attempt is Attempt & { readonly kind: Superseding } {
  return attempt.kind === "cancel" || attempt.kind === "replace" || attempt.kind === "placeholder";
}

/**
 * The kind of the same payload signed at another price. What superseded the caller's stays what it is: a cancel that is
 * paid better and mined is still a cancel.
 */
export function repricedKind(attempts: readonly Attempt[]): "reprice" | Superseding {
  return attempts.findLast(supersedes)?.kind ?? "reprice";
}

/** Bytes of it are ours to send, and what it offers is known. */
export function isSendable({ kind, foreign }: Attempt): boolean {
  return kind !== "external" && foreign !== true;
}

/**
 * A transaction that private endpoints alone may be given: so are its further payloads, until it is disclosed. `first`: the
 * same of one that nothing of ours was signed for yet.
 */
export function isPrivate(attempts: readonly Attempt[], first = false): boolean {
  const newest = attempts.findLast(isSendable);
  return newest === undefined ? first : newest.private === true;
}

/** As it is committed with its claim: the next owner of the lane sends it to the same kind of endpoint. */
export function routed<A extends Attempt>(attempt: A, privately: boolean): A {
  return privately ? { ...attempt, private: true } : attempt;
}

/** Only hashes are known, of foreign transactions or ones that a caller named: there is nothing to send or to reprice. */
export function isHashAlone(attempts: readonly Attempt[]): boolean {
  return attempts.length > 0 && !attempts.some(isSendable);
}

/** What may still be sent, oldest first: everything from the last payload that superseded the ones before it. */
export function sendableAttempts(attempts: readonly Attempt[]): readonly Attempt[] {
  const sendable = attempts.filter(isSendable);
  return sendable.slice(Math.max(0, sendable.findLastIndex(supersedes)));
}

/** Their hashes, as far as they are known. */
export function hashesOf(attempts: readonly Attempt[]): readonly Hash[] {
  return attempts.flatMap(({ txHash }) => txHash ?? []);
}

/**
 * The attempt to send next: the one whose receipt was withdrawn, because another branch may lack it, else the newest.
 * Null where nothing of it is ours to send.
 */
export function attemptToSend(attempts: readonly Attempt[], withdrawn: Hash | null = null): Attempt | null {
  const sendable = sendableAttempts(attempts);
  return sendable.find(({ txHash }) => txHash !== null && txHash === withdrawn) ?? sendable.at(-1) ?? null;
}
