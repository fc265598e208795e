import type { Clock } from "../ports/clock.ts";

/** How much of the time that has passed a step forward may make up for. */
const CATCH_UP = 0.1;

/**
 * The machine's clock, but for the time of day: that is the database's, whose times are on every row. By a machine that is an
 * hour ahead, every transaction would be an hour old, its lane's patience over, and a hook asked what to do about it.
 *
 * Nothing may seem older than it is. So where the database's clock is set back, that holds at once; where it is set forward,
 * or a server with another clock takes over, it is followed slowly. Before it is first heard, the machine's has to do.
 */
export class DatabaseClock implements Clock {
  private readonly machine;
  /** What is added to the milliseconds that never go back, and when that was found. */
  private heard: { readonly offsetMs: number; readonly atMs: number } | null = null;

  constructor(machine: Clock) {
    this.machine = machine;
  }

  /** What it said a moment ago. */
  hear(time: Date): void {
    const atMs = this.machine.monotonicMs();
    const saidMs = time.getTime() - atMs;
    const mostMs = this.heard === null ? saidMs : this.heard.offsetMs + CATCH_UP * (atMs - this.heard.atMs);
    this.heard = { offsetMs: Math.min(saidMs, mostMs), atMs };
  }

  now(): Date {
    return this.heard === null ? this.machine.now() : new Date(this.heard.offsetMs + this.machine.monotonicMs());
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
