/**
 * The database's history as this process knows it. A promotion changes the timeline, a dump restored elsewhere changes
 * the system identifier, and a restored snapshot sets the WAL position back; if another node noticed first, the feed
 * has a new epoch. In each case acknowledged commits may be lost, and nothing that was planned before may be written.
 * All writes are refused until a new instance registers.
 */
import { HistoryChanged } from "../../../ports/lane-store.ts";

export interface DatabaseIdentity {
  readonly systemIdentifier: string;
  readonly timeline: string;
  /** Flushed WAL position in bytes. It survives a crash, so it never decreases by itself. */
  readonly walPosition: bigint;
}

export interface ObservedHistory extends DatabaseIdentity {
  readonly epoch: number;
  /** True if acknowledged commits are also on a standby's disk. */
  readonly synchronous: boolean;
}

/**
 * Lower bound of the WAL position that a statement can read. It is recorded before the statement is sent, because
 * responses may arrive in another order.
 */
export interface Floor {
  readonly position: bigint;
  readonly generation: number;
}

export class KnownHistory {
  private known: DatabaseIdentity | null = null;
  private registered: { readonly epoch: number; readonly synchronous: boolean } | null = null;
  private highest = 0n;
  private generation = 0;
  private changed: string | null = null;

  get floor(): Floor {
    return { position: this.highest, generation: this.generation };
  }

  /** The last known history before any change; null if this process has neither registered nor written. */
  get memory(): ObservedHistory | null {
    if (this.known === null || this.registered === null) return null;
    return { ...this.known, ...this.registered, walPosition: this.highest };
  }

  /** The history that the server must have for a write; null if nothing may be written. */
  get standing(): ObservedHistory | null {
    return this.changed === null ? this.memory : null;
  }

  /**
   * Records the history that a commit saw. Unlike `verify` it never throws: the commit is durable, even if a change of
   * history was noticed meanwhile.
   */
  noteCommitted(observed: ObservedHistory, floor: Floor): void {
    if (this.changed === null && this.continues(observed, floor)) this.verify(observed, floor);
  }

  /** Sets the history at the time the store was opened. */
  begin(observed: DatabaseIdentity): void {
    this.known = observed;
    this.highest = observed.walPosition;
  }

  /** Sets the history that a new instance saw when it registered. */
  pin(observed: ObservedHistory): void {
    const { epoch, synchronous } = observed;
    const goesOn = this.changed === null && this.registered?.epoch === epoch;
    const highest = goesOn && this.highest > observed.walPosition ? this.highest : observed.walPosition;
    if (!goesOn) this.generation++;
    this.begin({ ...observed, walPosition: highest });
    this.registered = { epoch, synchronous };
    this.changed = null;
  }

  /** Throws if the observed history is not the known one. */
  verify(observed: ObservedHistory, floor: Floor): void {
    if (this.changed === null && !this.continues(observed, floor)) this.changed = describe(observed);
    if (this.changed !== null) throw new HistoryChanged(this.changed);
    const { epoch, synchronous } = observed;
    if (this.registered?.synchronous !== synchronous) this.registered = { epoch, synchronous };
    if (observed.walPosition > this.highest) this.highest = observed.walPosition;
  }

  private continues(observed: ObservedHistory, floor: Floor) {
    if (this.known === null || !sameIdentity(this.known, observed)) return false;
    if (this.registered !== null && this.registered.epoch !== observed.epoch) return false;
    return floor.generation !== this.generation || observed.walPosition >= floor.position;
  }
}

export function sameIdentity(a: DatabaseIdentity, b: DatabaseIdentity): boolean {
  return a.systemIdentifier === b.systemIdentifier && a.timeline === b.timeline;
}

function describe({ systemIdentifier, timeline, walPosition, epoch }: ObservedHistory) {
  const now = `system ${systemIdentifier}, timeline ${timeline}, WAL ${walPosition}, feed epoch ${epoch}`;
  return `the database now is ${now}: not the history known`;
}
