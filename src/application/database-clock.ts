import type { Clock } from "../ports/clock.ts";

/**
 * Maximum speed at which this clock catches up after the database's clock was set forward, as a fraction of the elapsed
 * time.
 */
const CATCH_UP = 0.1;

/**
 * The machine's clock, corrected to the database's time, because all stored times are the database's. Without the
 * correction, a machine whose clock is an hour ahead would see every transaction as an hour old, exceed time limits and
 * call hooks.
 *
 * No transaction may seem older than it is. So if the database's clock is set back, this clock follows at once. If it
 * is set forward, or a server with another clock takes over, this clock follows slowly. Until the first reading the
 * machine's clock is used.
 */
export class DatabaseClock implements Clock {
  private readonly machine;
  /** Difference between the database's clock and this machine's monotonic clock, and when it was measured. */
  private observed: { readonly offsetMs: number; readonly atMs: number } | null = null;

  constructor(machine: Clock) {
    this.machine = machine;
  }

  /** Records the database's time from a response that has just arrived. */
  observe(time: Date): void {
    const atMs = this.machine.monotonicMs();
    const saidMs = time.getTime() - atMs;
    const mostMs = this.observed === null ? saidMs : this.observed.offsetMs + CATCH_UP * (atMs - this.observed.atMs);
    this.observed = { offsetMs: Math.min(saidMs, mostMs), atMs };
  }

  now(): Date {
    return this.observed === null ? this.machine.now() : new Date(this.observed.offsetMs + this.machine.monotonicMs());
  }

  monotonicMs(): number {
    return this.machine.monotonicMs();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.machine.sleep(ms, signal);
  }

  after(ms: number, callback: () => void): () => void {
    return this.machine.after(ms, callback);
  }

  soon(callback: () => void): void {
    this.machine.soon(callback);
  }
}
