import type { LaneKey } from "../../domain/lane.ts";
import type { LaneWrite, TransitionItem } from "../../ports/lane-store.ts";
import type { Entry } from "./batch.ts";

/**
 * What a node said to bytes that it took: no decision reads it from the database, and a next owner who does not find it
 * looks for a receipt and sends again. Often the receipt comes soon, and both cost one change of the row.
 */
const ANSWERS_WAIT_MS = 100;

/** Rows past their watch only cost memory at the lane's next owner. */
const ENDINGS_WAIT_MS = 5_000;

interface Guests {
  readonly entries: Entry[];
  readonly leaveAtMs: number;
}

const NOBODY: readonly Entry[] = [];

/** Writes that are kept back for company: they leave with the next one of their lane, or after a while. */
class WaitingRoom {
  private readonly waitMs: number;
  /** In the order of their leaving: the wait is the same for all, and counts from a lane's first. */
  private readonly lanes = new Map<LaneKey, Guests>();

  constructor(waitMs: number) {
    this.waitMs = waitMs;
  }

  admit(key: LaneKey, entry: Entry): void {
    const guests = this.lanes.get(key) ?? { entries: [], leaveAtMs: entry.sinceMs + this.waitMs };
    this.lanes.set(key, guests);
    const last = guests.entries.at(-1);
    const joined = last === undefined ? null : joinedEnding(last, entry);
    if (joined === null) guests.entries.push(entry);
    else guests.entries.splice(-1, 1, joined);
  }

  /** All of one lane, in order. */
  leave(key: LaneKey): readonly Entry[] {
    const guests = this.lanes.get(key);
    if (guests === undefined) return NOBODY;
    this.lanes.delete(key);
    return guests.entries;
  }

  /** Null: of any lane. */
  has(key: LaneKey | null): boolean {
    return key === null ? this.lanes.size > 0 : this.lanes.has(key);
  }

  leaveBefore(nowMs: number): readonly Entry[] {
    const leaving: Entry[] = [];
    for (const [key, { leaveAtMs }] of this.lanes) {
      if (leaveAtMs > nowMs) break;
      leaving.push(...this.leave(key));
    }
    return leaving;
  }

  get nextLeaveMs(): number {
    for (const { leaveAtMs } of this.lanes.values()) return leaveAtMs;
    return Number.POSITIVE_INFINITY;
  }
}

/** The two kinds of writes that no caller waits for. */
export class WaitingRooms {
  private readonly answers = new WaitingRoom(ANSWERS_WAIT_MS);
  private readonly endings = new WaitingRoom(ENDINGS_WAIT_MS);

  /** False: this write does not wait. */
  admit(key: LaneKey, entry: Entry): boolean {
    const room = this.roomFor(entry.write);
    room?.admit(key, entry);
    return room !== null;
  }

  /** What must be written before this: allocations overtake, and what ends a watch is about rows that nothing else moves. */
  before(key: LaneKey, { kind }: LaneWrite): readonly Entry[] {
    return kind === "allocate" ? NOBODY : this.answers.leave(key);
  }

  /** Answers that were planned on top of a write that failed. */
  answersOf(key: LaneKey): readonly Entry[] {
    return this.answers.leave(key);
  }

  all(key: LaneKey): readonly Entry[] {
    return [...this.answers.leave(key), ...this.endings.leave(key)];
  }

  /** Null: of any lane. */
  has(key: LaneKey | null): boolean {
    return this.answers.has(key) || this.endings.has(key);
  }

  leaveBefore(nowMs: number): readonly Entry[] {
    return [...this.answers.leaveBefore(nowMs), ...this.endings.leaveBefore(nowMs)];
  }

  /** Infinity: none waits. */
  get nextLeaveMs(): number {
    return Math.min(this.answers.nextLeaveMs, this.endings.nextLeaveMs);
  }

  private roomFor(write: LaneWrite): WaitingRoom | null {
    if (write.kind === "unwatch") return this.endings;
    if (write.kind !== "transition") return null;
    return write.items.every(isPlainAnswer) ? this.answers : null;
  }
}

/** Not where a node that signed names the hash: that is written at once, because it is known nowhere else. */
function isPlainAnswer({ event, identified }: TransitionItem): boolean {
  return event === "broadcast" && identified === undefined;
}

/** A watch that ends at a higher block ends at the lower one, too. Null: these are no ends of a watch. */
function joinedEnding(earlier: Entry, later: Entry): Entry | null {
  if (earlier.write.kind !== "unwatch" || later.write.kind !== "unwatch") return null;
  const throughBlock = Math.max(earlier.write.throughBlock, later.write.throughBlock);
  return {
    ...later,
    write: { ...later.write, throughBlock },
    resolve: (outcome) => {
      earlier.resolve(outcome);
      later.resolve(outcome);
    },
    reject: (error) => {
      earlier.reject(error);
      later.reject(error);
    },
  };
}
