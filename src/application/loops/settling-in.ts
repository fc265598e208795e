import { bounded, type Clock } from "../../ports/clock.ts";
import type { NodeSettings } from "../settings.ts";

const GRACE_MS = 1_000;

/**
 * The first moments of a node: the previous owner of its lanes may be dead without this being known yet. Until it is, a
 * create may be refused because a dead node still counts as the owner; so this node is not ready.
 */
export class SettlingIn {
  private readonly clock;
  private readonly latestMs;
  private readonly settled = new AbortController();

  constructor(clock: Clock, { durationMs, clockSkewMs }: NodeSettings["lease"]) {
    this.clock = clock;
    this.latestMs = durationMs + clockSkewMs + GRACE_MS;
  }

  get isOver(): boolean {
    return this.settled.signal.aborted;
  }

  /** What is free by now has been claimed: creates are taken here, or by another live node. */
  end(): void {
    this.settled.abort();
  }

  /** Until it is over; at the latest when the previous owner's lease must have run out. */
  async whenOver(): Promise<void> {
    const over = new Promise<void>((resolve) => {
      this.settled.signal.addEventListener("abort", () => resolve(), { once: true });
      if (this.isOver) resolve();
    });
    await bounded(this.clock, over, this.clock.monotonicMs() + this.latestMs);
    this.end();
  }
}
