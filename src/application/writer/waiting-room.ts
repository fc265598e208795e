import type { LaneKey } from "../../domain/lane.ts";
import type { TransitionItem } from "../../ports/lane-store.ts";
import { type Entry, rejecting } from "./batch.ts";

/**
 * A node's answer to accepted bytes: no decision reads it from the database, and a next owner without it looks for a
 * receipt and sends again. Often the receipt comes soon, and both cost one change of the row.
 */
const ANSWERS_WAIT_MS = 200;

/**
 * A receipt that was found: the next owner, who does not find it in the database, finds it on the chain by the hash. Where
 * the block is deep enough soon, receipt and outcome cost one change of the row.
 */
const RECEIPTS_WAIT_MS = 200;

/** Rows past their watch only cost memory at the lane's next owner. */
const ENDINGS_WAIT_MS = 10_000;

/** Watches of a thousand lanes end with the same block: written all at once, they would hold up everything else. */
const ENDINGS_APART_MS = 10;

const NOBODY: readonly Entry[] = [];

/** Writes that are kept back for company: they leave with the next one of their lane, or after a while. */
class WaitingRoom {
  private readonly waitMs: number;
  private readonly apartMs: number;
  /** No lane leaves before. */
  private nextFreeMs = 0;
  /** In the order of their leaving: a lane's wait counts from its first, and no lane leaves before one that came earlier. */
  private readonly lanes = new Map<LaneKey, { readonly entries: Entry[]; readonly leaveAtMs: number }>();

  constructor(waitMs: number, apartMs = 0) {
    this.waitMs = waitMs;
    this.apartMs = apartMs;
  }

  admit(entry: Entry, nowMs = entry.sinceMs): void {
    const { key } = entry;
    const guests = this.lanes.get(key) ?? { entries: [], leaveAtMs: this.nextPlace(nowMs) };
    this.lanes.set(key, guests);
    const last = guests.entries.at(-1);
    const joined = last === undefined ? null : joinedEnding(last, entry);
    if (joined === null) guests.entries.push(entry);
    else guests.entries.splice(-1, 1, joined);
  }

  private nextPlace(nowMs: number) {
    const leaveAtMs = Math.max(nowMs + this.waitMs, this.nextFreeMs);
    this.nextFreeMs = leaveAtMs + this.apartMs;
    return leaveAtMs;
  }

  /** Removes and returns all entries of one lane, in order. */
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

  /** Null: none waits. */
  get nextLeaveMs(): number | null {
    for (const { leaveAtMs } of this.lanes.values()) return leaveAtMs;
    return null;
  }
}

/** The three kinds of writes that no caller waits for. */
export class WaitingRooms {
  private readonly answers = new WaitingRoom(ANSWERS_WAIT_MS);
  /** With the answers of the same lane that came before or after them: a lane has guests in one of the two. */
  private readonly receipts = new WaitingRoom(RECEIPTS_WAIT_MS);
  private readonly endings = new WaitingRoom(ENDINGS_WAIT_MS, ENDINGS_APART_MS);
  private readonly rooms = [this.answers, this.receipts, this.endings];

  /** False: this write does not wait. */
  admit(entry: Entry): boolean {
    const room = this.roomFor(entry);
    if (room === this.receipts) for (const answer of this.answers.leave(entry.key)) room.admit(answer, entry.sinceMs);
    room?.admit(entry);
    return room !== null;
  }

  /**
   * Writes that must precede this one: allocations overtake, and the end of a watch concerns rows that nothing else
   * moves.
   */
  before({ key, sort }: Entry): readonly Entry[] {
    return sort === "create" ? NOBODY : this.movesOf(key);
  }

  /** Answers and receipts: if a write of the lane failed, they were planned on top of it. */
  movesOf(key: LaneKey): readonly Entry[] {
    return [...this.answers.leave(key), ...this.receipts.leave(key)];
  }

  all(key: LaneKey): readonly Entry[] {
    return this.rooms.flatMap((room) => room.leave(key));
  }

  /** Null: of any lane. */
  has(key: LaneKey | null): boolean {
    return this.rooms.some((room) => room.has(key));
  }

  leaveBefore(nowMs: number): readonly Entry[] {
    return this.rooms.flatMap((room) => room.leaveBefore(nowMs));
  }

  /** Null: none waits. */
  get nextLeaveMs(): number | null {
    const times = this.rooms.flatMap((room) => room.nextLeaveMs ?? []);
    return times.length === 0 ? null : Math.min(...times);
  }

  private roomFor({ key, write }: Entry) {
    if (write.kind === "unwatch") return this.endings;
    if (write.kind !== "transition") return null;
    if (write.items.every(isPlainReceipt)) return this.receipts;
    if (!write.items.every(isPlainAnswer)) return null;
    return this.receipts.has(key) ? this.receipts : this.answers;
  }
}

/** Not if a node that signed names the hash: that is written at once, because it is known nowhere else. */
function isPlainAnswer({ event, identified }: TransitionItem) {
  return event === "broadcast" && identified === undefined;
}

/** Not if the transaction was reported as STUCK, nor if another program's transaction took our nonce. */
function isPlainReceipt({ event, from, attempt }: TransitionItem) {
  return event === "mine" && from === "TRACKING" && attempt === undefined;
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
    reject: rejecting([earlier, later]),
  };
}
