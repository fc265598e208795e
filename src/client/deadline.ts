import { timedOut } from "./error-classes.ts";

/** Time and chance of the SDK, all of it: it runs in the caller's process and is given no ports. */

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Of the whole call, repeats and pauses included. */
  readonly timeoutMs?: number;
}

export interface OrderOptions extends CallOptions {
  /**
   * Your own name of the order, 1 to 255 characters of printable ASCII: told again under it, also by another process, it is
   * carried out once. Without one, each call has a key of its own, under which the SDK repeats it after silence.
   */
  readonly idempotencyKey?: string;
}

export interface Deadline {
  /** Aborted when the time is over, with a TimeoutError, or by the caller, with the caller's reason. */
  readonly signal: AbortSignal;
  leftMs(): number;
}

/** A timer that is set for longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Runs the work under a deadline; `what` says with the time that passed what did not happen. Ends with the caller's own reason where the caller ends it. */
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
    // Whatever the work does with the signal, the caller is answered in time.
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

/** Doubling, and spread out: those who were refused together do not come back together. */
export function backOffMs(failures: number): number {
  return Math.min(FIRST_BACK_OFF_MS * 2 ** failures, LONGEST_BACK_OFF_MS) * (0.5 + Math.random() / 2);
}

export function newRequestId(): string {
  return crypto.randomUUID();
}
