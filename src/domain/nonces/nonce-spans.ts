/**
 * Shows the nonces of a lane as spans, for people. Neighbouring nonces of the same kind are combined into one span; a
 * nonce that may need attention is shown separately.
 */

import type { Reservation } from "../transaction/reservations.ts";
import type { LaneTransaction } from "../transaction/transaction.ts";
import type { Hole } from "./holes.ts";

export const SPAN_KINDS = [
  "final",
  "mined",
  "inFlight",
  "queued",
  "hole",
  "reserved",
  "foreign",
  "failed",
  "stuck",
  "held",
] as const;
export type SpanKind = (typeof SPAN_KINDS)[number];

export interface NonceSpan {
  readonly from: number;
  /** Last nonce of the span, inclusive. */
  readonly to: number;
  readonly kind: SpanKind;
  readonly txId?: string;
  readonly reservationId?: string;
  readonly detail?: string;
}

export interface HeldNonce extends LaneTransaction {
  readonly held: boolean;
}

export interface NonceHolders {
  readonly transactions: readonly HeldNonce[];
  readonly reservations: readonly Pick<Reservation, "nonce" | "reservationId" | "state">[];
  readonly holes: readonly Pick<Hole, "nonce" | "detail">[];
  /** Transactions below this nonce may have been deleted by retention; absent: none was deleted. */
  readonly departedBelow?: number;
}

/**
 * Spans over [from, to], ascending. A nonce without a transaction was used by another program, or its transaction was
 * deleted by retention.
 */
export function spansOf(from: number, to: number, holders: NonceHolders): readonly NonceSpan[] {
  const { departedBelow = 0 } = holders;
  const single = new Map<number, NonceSpan>();
  for (const { nonce, reservationId, state } of holders.reservations)
    if (state === "RESERVED") single.set(nonce, { ...at(nonce), kind: "reserved", reservationId });
  for (const { nonce, detail } of holders.holes) single.set(nonce, { ...at(nonce), kind: "hole", detail });
  for (const each of holders.transactions) single.set(each.nonce, spanOfTransaction(each));
  const spans: NonceSpan[] = [];
  for (let nonce = from; nonce <= to; nonce++) {
    const nobodys = nonce < departedBelow ? "final" : "foreign";
    const span = single.get(nonce) ?? { ...at(nonce), kind: nobodys };
    const last = spans.at(-1);
    if (last !== undefined && isJoined(last, span)) spans[spans.length - 1] = { ...last, to: nonce };
    else spans.push(span);
  }
  return spans;
}

const at = (nonce: number) => ({ from: nonce, to: nonce });

function spanOfTransaction({ nonce, txId, state, subState, held }: HeldNonce): NonceSpan {
  const own = { ...at(nonce), txId };
  if (state === "CONFIRMED") return { ...at(nonce), kind: "final" };
  if (subState === "NONCE_CONSUMED_EXTERNALLY") return { ...own, kind: "foreign", detail: subState };
  if (state === "FAILED_FINAL") return { ...own, kind: "failed", ...(subState && { detail: subState }) };
  if (subState === "MINED") return { ...at(nonce), kind: "mined" };
  if (held) return { ...own, kind: "held" };
  if (state === "STUCK") return { ...own, kind: "stuck" };
  if (subState === "UNKNOWN_SUBMIT_RESULT") return { ...own, kind: "inFlight", detail: subState };
  return { ...at(nonce), kind: state === "TRACKING" ? "inFlight" : "queued" };
}

/**
 * True if two neighbouring spans may be combined: they are of the same kind, and neither names a transaction, a
 * reservation or a cause.
 */
function isJoined(last: NonceSpan, next: NonceSpan) {
  return last.kind === next.kind && isPlain(last) && isPlain(next);
}

function isPlain({ txId, reservationId, detail }: NonceSpan) {
  return txId === undefined && reservationId === undefined && detail === undefined;
}
