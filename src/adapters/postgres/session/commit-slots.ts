/** Proof that a database transaction was committed: the transaction writes a random `marker` into the row `slot`. */
export interface Mark {
  readonly slot: number;
  readonly marker: string;
}

/** Marker of a closed slot, which no transaction may use any more. */
export const CLOSED = "00000000-0000-0000-0000-000000000000";

/**
 * Rows of `commit_marker`, one per concurrent writing transaction, and the markers that this process knows to be in
 * them. If the database lost commits, the newest acknowledged markers are missing.
 */
export class CommitSlots {
  readonly storeId: string;
  private readonly free: number[] = [];
  private readonly retired = new Set<number>();
  /** Markers of transactions whose outcome could not be determined, by slot. */
  readonly doubts = new Map<number, string>();
  private readonly written = new Map<number, Written>();
  private highest = 0;

  constructor(storeId: string) {
    this.storeId = storeId;
  }

  take(): number {
    return this.free.pop() ?? this.takeFresh();
  }

  /**
   * Returns a slot that was never used, so that the markers in the other slots stay and can be compared with the
   * database.
   */
  takeFresh(): number {
    return ++this.highest;
  }

  give(slot: number): void {
    if (!this.retired.delete(slot)) this.free.push(slot);
  }

  /**
   * Retires a slot whose transaction got no response: the transaction may still arrive there, or the slot may be
   * closed, so it is not used again.
   */
  retire(slot: number): void {
    this.retired.add(slot);
    this.sent(slot, CLOSED);
  }

  /** Records that COMMIT is about to be sent: from now on this marker may be in the slot. */
  sent(slot: number, marker: string): void {
    const known = this.written.get(slot) ?? { markers: [], acknowledged: null };
    this.written.set(slot, { ...known, markers: [...known.markers, marker].slice(-REMEMBERED) });
  }

  /** Records that the marker is durable: its transaction is known to be committed. */
  acknowledged(slot: number, marker: string, atMs: number): void {
    const markers = this.written.get(slot)?.markers ?? [marker];
    this.written.set(slot, { markers, acknowledged: { marker, atMs } });
  }

  /**
   * Forgets the markers of all other slots: they prove nothing about the history that begins with this slot's commit.
   */
  forgetAllBut(slot: number): void {
    for (const other of [...this.written.keys()]) if (other !== slot) this.written.delete(other);
    this.doubts.clear();
  }

  /**
   * Markers that the database must have. Call this before reading the database. Commits are kept or lost in the order
   * of the log, so markers acknowledged long before the newest one need no check.
   */
  expected(): ReadonlyMap<number, string> {
    const acknowledged = [...this.written].flatMap(([slot, written]) =>
      written.acknowledged === null ? [] : [{ slot, ...written.acknowledged }],
    );
    const newestMs = Math.max(...acknowledged.map(({ atMs }) => atMs));
    const inDoubt = acknowledged.filter(({ atMs }) => newestMs - atMs <= IN_DOUBT_MS);
    return new Map(inDoubt.map(({ slot, marker }) => [slot, marker]));
  }

  /**
   * For each expected slot, the markers that may be in it: the expected one, or one that this process wrote there
   * later.
   */
  accepted(expected: ReadonlyMap<number, string>): ReadonlyMap<number, readonly string[]> {
    return new Map(
      [...expected].map(([slot, marker]) => {
        const markers = this.written.get(slot)?.markers ?? [];
        return [slot, [marker, ...markers.slice(markers.lastIndexOf(marker) + 1)]];
      }),
    );
  }

  /** True if every slot holds the expected marker, or a later one of this process. */
  areKept(expected: ReadonlyMap<number, string>, found: readonly { slot: number; marker: string }[]): boolean {
    const there = new Map(found.map(({ slot, marker }) => [slot, marker]));
    return [...this.accepted(expected)].every(([slot, markers]) => markers.includes(there.get(slot) ?? ""));
  }
}

interface Written {
  /** Markers of the slot, in the order they were sent. */
  readonly markers: readonly string[];
  readonly acknowledged: { readonly marker: string; readonly atMs: number } | null;
}

/** Number of markers remembered per slot: more than can be written during one read of the database. */
const REMEMBERED = 64;
/**
 * A time longer than any transaction. A marker that was acknowledged this long before the newest one precedes it in the
 * log.
 */
const IN_DOUBT_MS = 60_000;
