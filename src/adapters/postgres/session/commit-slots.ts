/** Evidence that a transaction leaves if it is committed. */
export interface Mark {
  readonly slot: number;
  readonly marker: string;
}

/** A slot with this value is closed: no transaction may use it any more. */
export const CLOSED = "00000000-0000-0000-0000-000000000000";

/**
 * Rows of `commit_marker`: one for each writing transaction that is under way at a time, and what this process knows to
 * be in them. A database that lost commits does not hold the newest of what it had acknowledged.
 */
export class CommitSlots {
  readonly storeId: string;
  private readonly free: number[] = [];
  private readonly retired = new Set<number>();
  /** Markers of transactions whose outcome could not be found out, by slot. */
  readonly doubts = new Map<number, string>();
  private readonly written = new Map<number, Written>();
  private highest = 0;

  constructor(storeId: string) {
    this.storeId = storeId;
  }

  take(): number {
    return this.free.pop() ?? this.takeFresh();
  }

  /** A slot never used before: the markers in the others stay, to be compared with the database. */
  takeFresh(): number {
    return ++this.highest;
  }

  give(slot: number): void {
    if (!this.retired.delete(slot)) this.free.push(slot);
  }

  /** A transaction that got no answer may still arrive there: the slot may be closed from here on, and is not given out again. */
  retire(slot: number): void {
    this.retired.add(slot);
    this.sent(slot, CLOSED);
  }

  /** COMMIT is about to leave: from here on this marker may be there. */
  sent(slot: number, marker: string): void {
    const known = this.written.get(slot) ?? { markers: [], acknowledged: null };
    this.written.set(slot, { ...known, markers: [...known.markers, marker].slice(-REMEMBERED) });
  }

  /** The marker is durable: its transaction is known to be committed. */
  acknowledged(slot: number, marker: string, atMs: number): void {
    const markers = this.written.get(slot)?.markers ?? [marker];
    this.written.set(slot, { markers, acknowledged: { marker, atMs } });
  }

  /** Markers of another history say nothing about the one that begins with this slot's commit. */
  forgetAllBut(slot: number): void {
    for (const other of [...this.written.keys()]) if (other !== slot) this.written.delete(other);
    this.doubts.clear();
  }

  /**
   * To be taken before the database is asked: what it must hold by then. Commits are kept or lost in the order of the
   * log, so what was acknowledged long before the newest needs no look.
   */
  expected(): ReadonlyMap<number, string> {
    const acknowledged = [...this.written].flatMap(([slot, written]) =>
      written.acknowledged === null ? [] : [{ slot, ...written.acknowledged }],
    );
    const newestMs = Math.max(...acknowledged.map(({ atMs }) => atMs));
    const inDoubt = acknowledged.filter(({ atMs }) => newestMs - atMs <= IN_DOUBT_MS);
    return new Map(inDoubt.map(({ slot, marker }) => [slot, marker]));
  }

  /** For each of those slots, what may be there: that, or something that this process wrote there later. */
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
  /** Markers in the order they were sent. */
  readonly markers: readonly string[];
  readonly acknowledged: { readonly marker: string; readonly atMs: number } | null;
}

/** More than one look at the database can be overtaken by. */
const REMEMBERED = 64;
/** No transaction lives this long: one that was acknowledged earlier precedes the newest in the log. */
const IN_DOUBT_MS = 60_000;
