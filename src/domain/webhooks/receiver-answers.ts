/** Results of deliveries by the receiver's response, and the pause before a failed delivery is retried. */
import { type BackoffRule, backoffMs } from "../pace/when.ts";

/** Response of a receiver. Silence is any failure before a status: connection, TLS, refused address, redirect, time. */
export type ReceiverAnswer =
  | { readonly kind: "status"; readonly status: number; readonly retryAfterMs: number | null }
  | { readonly kind: "silence"; readonly reason: string };

/**
 * Result of a delivery. "delivered": 2xx. "gone": 410, the receiver wants nothing more. "throttled": 429 or 503.
 * "refused": any other status. "silent": no status.
 */
export const DELIVERY_RESULTS = ["delivered", "gone", "throttled", "refused", "silent"] as const;
export type DeliveryResult = (typeof DELIVERY_RESULTS)[number];

const GONE = 410;
const THROTTLED = [429, 503];

export function resultOf(answer: ReceiverAnswer): DeliveryResult {
  if (answer.kind === "silence") return "silent";
  const { status } = answer;
  if (status >= 200 && status < 300) return "delivered";
  if (status === GONE) return "gone";
  return THROTTLED.includes(status) ? "throttled" : "refused";
}

export function reasonOf(answer: ReceiverAnswer): string {
  return answer.kind === "silence" ? answer.reason : `HTTP ${answer.status}`;
}

/** Longest pause between two tries, and longest `Retry-After` that is honoured. */
export const LONGEST_PAUSE_MS = 3_600_000;
const RETRY: BackoffRule = { firstMs: 1_000, mostMs: LONGEST_PAUSE_MS };

/** Pause after this many failures in a row: doubling with jitter, and not shorter than the receiver asks for. */
export function pauseMs(answer: ReceiverAnswer, failures: number, random: number): number {
  const asked = answer.kind === "status" ? (answer.retryAfterMs ?? 0) : 0;
  return Math.max(Math.min(asked, LONGEST_PAUSE_MS), backoffMs(RETRY, failures, random));
}

/** Parses `Retry-After`: seconds, or a date of HTTP. Null if it is absent or unreadable. */
export function retryAfterMs(header: string | null, now: Date): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const atMs = Date.parse(text);
  return /[a-z]/i.test(text) && Number.isFinite(atMs) ? Math.max(0, atMs - now.getTime()) : null;
}
