import { timedOut } from "./error-classes.ts";

/** All timers and random numbers of the SDK are in this file: it runs in the caller's process, without ports. */

export interface CallOptions {
  /** Ends the call when it is aborted; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Time limit of the whole call in ms, repeats and pauses included. */
  readonly timeoutMs?: number;
}

export interface OrderOptions extends CallOptions {
  /**
   * Name that you give to the action, 1 to 255 characters of printable ASCII. If the action is requested again under
   * this name, even by another process, it is not performed a second time. Without a name, each call has a generated
   * key, which the SDK reuses when it repeats the call.
   */
  readonly idempotencyKey?: string;
}

export interface Deadline {
  /** Aborted with a TimeoutError when the time limit is reached, or by the caller with its own reason. */
  readonly signal: AbortSignal;
  leftMs(): number;
}

/** Longest timer that Node supports; it fires longer ones at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs `work` with a deadline. `what` describes the failure in the TimeoutError. Rejects with the caller's reason if
 * the caller aborts.
 */
export async function underDeadline<T>(
  what: string,
  { timeoutMs = Number.POSITIVE_INFINITY, signal: ended }: CallOptions,
  work: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const { signal } = controller;
  const end = () => controller.abort(ended?.reason);
  const leftMs = countdown(timeoutMs);
  const late = () => controller.abort(timedOut(`${what} after ${timeoutMs} ms`));
  const timer = timeoutMs <= LONGEST_TIMER_MS ? setTimeout(late, timeoutMs) : undefined;
  ended?.addEventListener("abort", end);
  try {
    ended?.throwIfAborted();
    // Promise.race gives the caller an answer in time even if the work ignores the signal.
    return await Promise.race([work({ signal, leftMs }), whenAborted(signal)]);
  } finally {
    clearTimeout(timer);
    ended?.removeEventListener("abort", end);
  }
}

export function countdown(timeoutMs: number): () => number {
  const untilMs = performance.now() + timeoutMs;
  return () => untilMs - performance.now();
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cut = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", cut);
      resolve();
    }, ms);
    signal?.addEventListener("abort", cut, { once: true });
  });
}

const FIRST_BACK_OFF_MS = 100;
const LONGEST_BACK_OFF_MS = 5_000;

/** Exponential back-off with jitter, so that clients that were refused together do not retry together. */
export function backOffMs(failures: number): number {
  return Math.min(FIRST_BACK_OFF_MS * 2 ** failures, LONGEST_BACK_OFF_MS) * (0.5 + Math.random() / 2);
}

export function newRequestId(): string {
  return crypto.randomUUID();
}
