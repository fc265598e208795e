/**
 * Looks into the database, again and again, for as long as callers here wait for what the owner of a lane writes there. Whoever
 * hears of news looks then, and else only for hints that were lost.
 */
import type { Clock } from "../../ports/clock.ts";
import type { WakeUps } from "../../ports/wake-ups.ts";

export interface LookoutPorts {
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly wakeUps: Pick<WakeUps, "hears">;
}

interface Duty {
  isAwaited(): boolean;
  /** Must not throw. */
  look(): Promise<void>;
}

const LOOK_EVERY_MS = { hearing: 250, deaf: 25 };

export class Lookout {
  private readonly ports: LookoutPorts;
  private readonly duty: Duty;
  private isWatching = false;
  private hurried = false;
  private pause = new AbortController();

  constructor(ports: LookoutPorts, duty: Duty) {
    this.ports = ports;
    this.duty = duty;
  }

  /** This process ends: nobody may be kept waiting any longer. */
  get isHurried(): boolean {
    return this.hurried;
  }

  /** There may be news. */
  lookNow(): void {
    this.pause.abort();
  }

  hurry(): void {
    this.hurried = true;
    this.lookNow();
  }

  /** Until nobody waits any more. */
  async watch(): Promise<void> {
    if (this.isWatching) return;
    this.isWatching = true;
    const { clock, wakeUps } = this.ports;
    while (this.duty.isAwaited()) {
      if (!this.hurried) {
        const pauseMs = wakeUps.hears ? LOOK_EVERY_MS.hearing : LOOK_EVERY_MS.deaf;
        await clock.sleep(pauseMs, this.pause.signal).catch(() => undefined);
      }
      this.pause = new AbortController();
      await this.duty.look();
    }
    this.isWatching = false;
  }
}
