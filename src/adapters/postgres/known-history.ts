/**
 * The database's history as this process knows it. A promotion changes the timeline, a restored dump the system
 * identifier, a restored snapshot puts the WAL position back. In each case commits that were acknowledged may be gone,
 * fencing tokens may be given out twice, and nothing that was planned before may be written any more.
 */
import { HistoryChanged } from "../../ports/lane-store.ts";

export interface ObservedHistory {
  readonly systemIdentifier: string;
  readonly timeline: string;
  /** What is flushed, as a number of bytes: survives a crash, so it never goes back by itself. */
  readonly walPosition: bigint;
}

export class KnownHistory {
  private identity: ObservedHistory | null = null;
  private highest = 0n;
  private generation = 0;
  private readonly registeredIn = new Map<string, number>();

  /**
   * To be taken before a statement is sent. What it then reads cannot be below, although answers on two connections may
   * overtake each other.
   */
  get floor(): bigint {
    return this.highest;
  }

  /** What the store found when it was opened. */
  begin(observed: ObservedHistory): void {
    this.identity ??= observed;
    this.raise(observed.walPosition);
  }

  /** A new instance begins in the history it sees. Those of an earlier history stay refused for ever. */
  pin(instanceId: string, observed: ObservedHistory, floor: bigint): void {
    if (!this.continues(observed, floor)) this.forget();
    this.begin(observed);
    this.registeredIn.set(instanceId, this.generation);
  }

  /** Throws where the history is another one than these instances were registered in. */
  verify(observed: ObservedHistory, floor: bigint, instances: Iterable<string> = []): void {
    if (!this.continues(observed, floor)) {
      this.forget();
      throw new HistoryChanged(describe(observed));
    }
    for (const instance of instances) {
      if ((this.registeredIn.get(instance) ?? 0) !== this.generation) throw new HistoryChanged(describe(observed));
    }
    this.raise(observed.walPosition);
  }

  private continues(observed: ObservedHistory, floor: bigint): boolean {
    return this.identity !== null && sameIdentity(this.identity, observed) && observed.walPosition >= floor;
  }

  private forget(): void {
    if (this.identity === null) return;
    this.identity = null;
    this.highest = 0n;
    this.generation++;
  }

  private raise(position: bigint): void {
    if (position > this.highest) this.highest = position;
  }
}

export function sameIdentity(a: ObservedHistory, b: ObservedHistory): boolean {
  return a.systemIdentifier === b.systemIdentifier && a.timeline === b.timeline;
}

function describe({ systemIdentifier, timeline, walPosition }: ObservedHistory): string {
  return `the database now is system ${systemIdentifier}, timeline ${timeline}, WAL ${walPosition}: not the history known`;
}
