import { bounded, type Clock } from "../../ports/clock.ts";
import type { NodeSettings } from "../settings.ts";

const GRACE_MS = 1_000;

/**
 * The first moments of a node: whoever was here before may be dead, and not known to be. Until that is found out, a
 * create may be refused for the sake of a node that will never answer; so this one is not ready.
 */
export class SettlingIn {
  private readonly clock: Clock;
  private readonly latestMs: number;
  private readonly settled = new AbortController();

  constructor(clock: Clock, { durationMs, clockSkewMs }: NodeSettings["lease"]) {
    this.clock = clock;
    this.latestMs = durationMs + clockSkewMs + GRACE_MS;
  }

  get isOver(): boolean {
    return this.settled.signal.aborted;
  }

  /** What is free by now has been claimed: creates are taken here, or by somebody who lives. */
  end(): void {
    this.settled.abort();
  }

  /** Until it is over; at the latest when the lease of whoever was here before must have run out. */
  async whenOver(): Promise<void> {
    const over = new Promise<void>((resolve) => {
      this.settled.signal.addEventListener("abort", () => resolve(), { once: true });
      if (this.isOver) resolve();
    });
    await bounded(this.clock, over, this.clock.monotonicMs() + this.latestMs);
    this.end();
  }
}
