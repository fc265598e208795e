import type { Clock } from "../ports/clock.ts";
import type { InstanceRecord } from "../ports/lease-store.ts";

/**
 * The machine's clock, but for the time of day: that is the database's, whose times are on every row. By a machine that is an
 * hour ahead, every transaction would be an hour old, its lane's patience over, and a hook asked what to do about it.
 *
 * Heard from one's own heartbeat, whenever the instances are read: late by up to a look, so that nothing seems older than
 * it is. Before the first, the machine's has to do.
 */
export class DatabaseClock implements Clock {
  private readonly machine: Clock;
  /** What a heartbeat said, and when it was read, in milliseconds that never go back. */
  private heard: { readonly heartbeatMs: number; readonly readMs: number } | null = null;

  constructor(machine: Clock) {
    this.machine = machine;
  }

  hear(instances: readonly Pick<InstanceRecord, "instanceId" | "heartbeatAt">[], selfId: string): void {
    const heartbeatMs = instances.find(({ instanceId }) => instanceId === selfId)?.heartbeatAt.getTime();
    if (heartbeatMs === undefined || heartbeatMs === this.heard?.heartbeatMs) return;
    this.heard = { heartbeatMs, readMs: this.machine.monotonicMs() };
  }

  now(): Date {
    if (this.heard === null) return this.machine.now();
    return new Date(this.heard.heartbeatMs + this.machine.monotonicMs() - this.heard.readMs);
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
