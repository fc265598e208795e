import { WAKE_UPS, type WakeUp, type WakeUps } from "../../src/ports/wake-ups.ts";

/** Delivers hints between the nodes of one simulation. */
export class MemoryHints {
  private readonly listening = new Set<MemoryWakeUps>();

  connect(): MemoryWakeUps {
    const wakeUps = new MemoryWakeUps(this);
    this.listening.add(wakeUps);
    return wakeUps;
  }

  /** Delivers a hint to every other node, a moment later. */
  carry(from: MemoryWakeUps, wakeUp: WakeUp): void {
    void Promise.resolve().then(() => {
      for (const each of this.listening) if (each !== from) each.wake(wakeUp);
    });
  }

  leave(wakeUps: MemoryWakeUps): void {
    this.listening.delete(wakeUps);
  }
}

export class MemoryWakeUps implements WakeUps {
  private readonly hints: MemoryHints;
  private listener: (wakeUp: WakeUp) => void = () => undefined;
  private deaf = false;

  constructor(hints: MemoryHints) {
    this.hints = hints;
  }

  get isListening(): boolean {
    return !this.deaf;
  }

  notify(wakeUp: WakeUp): void {
    if (!this.deaf) this.hints.carry(this, wakeUp);
  }

  listen(listener: (wakeUp: WakeUp) => void): void {
    this.listener = listener;
  }

  async close(): Promise<void> {
    this.hints.leave(this);
    this.deaf = true;
  }

  wake(wakeUp: WakeUp): void {
    if (!this.deaf) this.listener(wakeUp);
  }

  /** Disconnects: no hint is sent or received until `reconnect`. */
  disconnect(): void {
    this.deaf = true;
  }

  reconnect(): void {
    this.deaf = false;
    for (const wakeUp of WAKE_UPS) this.listener(wakeUp);
  }
}
