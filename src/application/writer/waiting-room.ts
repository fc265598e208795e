import type { LaneKey } from "../../domain/lane.ts";
import type { TransitionItem } from "../../ports/lane-store.ts";
import { type Entry, rejecting } from "./batch.ts";

/**
 * How long the write "a node accepted the bytes" is delayed. The delay is safe: no decision reads this from the
 * database, and if the write is lost, the lane's next owner looks for a receipt and resends. Often the receipt arrives
 * soon, and both then cost one update of the row.
 */
const ANSWERS_WAIT_MS = 200;

/**
 * How long the write of a found receipt is delayed. The delay is safe: if the write is lost, the lane's next owner
 * finds the receipt on the chain by the transaction's hash. If the block is final soon, receipt and outcome cost one
 * update of the row.
 */
const RECEIPTS_WAIT_MS = 200;

/**
 * How long the write that ends the watch for reorgs is delayed. Rows that are still marked as watched only cost the
 * lane's next owner some memory.
 */
const ENDINGS_WAIT_MS = 10_000;

/**
 * Pause in ms between the writes of two lanes that end their watch for reorgs. With one new block the watch may end for
 * a thousand lanes, and writing all of them at once would delay all other writes.
 */
const ENDINGS_APART_MS = 10;

const NOBODY: readonly Entry[] = [];

/**
 * Delays writes so that they can be combined. They are sent after a while, or earlier: answers and receipts before the
 * lane's next write that is no allocation, all of them if the lane's open writes must end.
 */
class WaitingRoom {
  private readonly waitMs: number;
  private readonly apartMs: number;
  /** Earliest time at which the next lane's writes may be sent. */
  private nextFreeMs = 0;
  /**
   * Delayed writes by lane, in the order in which they will be sent. A lane's delay counts from its first write, and no
   * lane is sent before an earlier one.
   */
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

  /** True if this lane has delayed writes. If the lane is null: true if any lane has some. */
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

  /** Time at which the next lane's entries are sent; null if none are delayed. */
  get nextLeaveMs(): number | null {
    for (const { leaveAtMs } of this.lanes.values()) return leaveAtMs;
    return null;
  }
}

/** The three kinds of writes that no caller waits for, each with its own delay. */
export class WaitingRooms {
  private readonly answers = new WaitingRoom(ANSWERS_WAIT_MS);
  /**
   * Delayed receipts. If a lane has a delayed receipt, the lane's delayed answers of nodes are kept here, too, and not
   * in `answers`.
   */
  private readonly receipts = new WaitingRoom(RECEIPTS_WAIT_MS);
  private readonly endings = new WaitingRoom(ENDINGS_WAIT_MS, ENDINGS_APART_MS);
  private readonly rooms = [this.answers, this.receipts, this.endings];

  /** Delays the write if possible; false if it must be sent at once. */
  admit(entry: Entry): boolean {
    const room = this.roomFor(entry);
    if (room === this.receipts) for (const answer of this.answers.leave(entry.key)) room.admit(answer, entry.sinceMs);
    room?.admit(entry);
    return room !== null;
  }

  /**
   * Delayed writes of the lane that must be sent before this one. None if this one is an allocation, which may overtake
   * them. Writes that end the watch for reorgs are not included, because no other write changes those rows.
   */
  before({ key, sort }: Entry): readonly Entry[] {
    return sort === "create" ? NOBODY : this.movesOf(key);
  }

  /**
   * Removes and returns a lane's delayed answers and receipts. Also needed if a write of the lane failed, because the
   * delayed ones build on its result.
   */
  movesOf(key: LaneKey): readonly Entry[] {
    return [...this.answers.leave(key), ...this.receipts.leave(key)];
  }

  all(key: LaneKey): readonly Entry[] {
    return this.rooms.flatMap((room) => room.leave(key));
  }

  /** True if this lane has delayed writes. If the lane is null: true if any lane has some. */
  has(key: LaneKey | null): boolean {
    return this.rooms.some((room) => room.has(key));
  }

  leaveBefore(nowMs: number): readonly Entry[] {
    return this.rooms.flatMap((room) => room.leaveBefore(nowMs));
  }

  /** Time at which the next delayed entries are sent; null if there are none. */
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

/**
 * True if a node's answer may be delayed. Not if a signing node reports the hash: that is written at once, because it
 * is known nowhere else.
 */
function isPlainAnswer({ event, identified }: TransitionItem) {
  return event === "broadcast" && identified === undefined;
}

/**
 * True if a receipt may be delayed. Not if the transaction was reported as STUCK, nor if another program's transaction
 * used our nonce.
 */
function isPlainReceipt({ event, from, attempt }: TransitionItem) {
  return event === "mine" && from === "TRACKING" && attempt === undefined;
}

/**
 * Combines two writes that end a lane's watch for reorgs: the one at the higher block includes the lower. Null if the
 * entries are other writes.
 */
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
