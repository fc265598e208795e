import type { LaneKey } from "../../domain/lane.ts";
import type { Entry } from "./batch.ts";

/**
 * Number of creates that cost as much as one move: a create only inserts rows; a move looks up its row first and
 * changes more.
 */
const CREATES_PER_MOVE = 3;
const LEAST_COST = 1 / CREATES_PER_MOVE;

/** While creates have precedence, this many of them are committed for every move. */
const CREATES_FOR_A_MOVE = 8;

/** While callers wait to be read, a move that has waited for this long is committed even beyond its share. */
const PATIENCE_MS = 1_000;

/**
 * From this number of lanes on, creates get a transaction of their own, which takes one round trip and a third of the
 * time; moves are committed beside it. With fewer lanes, both would only wait for the same locks.
 */
const MANY_LANES = 8;

/** A move that was skipped this often because its shard was in flight is committed with the shard's next creates. */
const PASSED_BY_AT_MOST = 3;

/** Which entries a transaction may contain. */
export type Cargo = "creates" | "moves" | "all";

/** Transactions in flight, and waiting callers. */
export interface UnderWay {
  readonly busyShards: ReadonlySet<number>;
  /** True if a transaction in flight locks the feed's counter row. */
  readonly completing: boolean;
  /** True if a transaction of creates alone is in flight. */
  readonly creating: boolean;
  /** True if all other slots are in use: only creates may start, even of few lanes. */
  readonly onlyCreates: boolean;
  /** True if more callers want to create something than the node has had time to read. */
  readonly callersWait: boolean;
  /** True if a hand-over, reload or stop waits for the open writes of this shard. */
  readonly isHurried: (shard: number) => boolean;
  readonly nowMs: number;
}

export interface Turn {
  readonly cargo: Cargo;
  readonly taken: Entry[];
  readonly left: Entry[];
}

/**
 * Selects the queued writes of the next transaction: in order, as many as fit.
 *
 * Allocations may overtake writes about existing transactions, since they touch none of those rows; everything else
 * keeps its position. If a whole batch of creates waits on one lane, creates have precedence there, and the lane's
 * moves get only a share. A caller that creates more than a lane can send is then answered at once, and its
 * transactions wait in the database. The share keeps the moves going. An overloaded node reads fewer creates at once
 * than a batch holds, and would spend most of its time on the moves of the first ones. So creates also have precedence
 * while callers wait to be read. The lanes of those callers are not known yet, so the moves of every lane wait, for a
 * second at most.
 */
export class Turns {
  private readonly batchSize: number;
  /**
   * Balance of a shard in which creates have precedence, counted in creates. Committed creates raise it, committed
   * moves lower it; it is negative if a write exceeded its share.
   */
  private readonly shares = new Map<number, number>();

  constructor(batchSize: number) {
    this.batchSize = batchSize;
  }

  next(queue: readonly Entry[], underWay: UnderWay): Turn {
    const survey = surveyOf(queue, underWay);
    this.findPressed(queue, survey, underWay);
    const turn: Turn = { cargo: cargoOf(survey, underWay), taken: [], left: [] };
    const held: Held = { all: new Set(underWay.busyShards), moves: new Set(), creates: new Set() };
    let room = this.batchSize;
    for (const [at, entry] of queue.entries()) {
      const isFull = room < LEAST_COST && turn.taken.length > 0;
      // Quick checks first: a queue of a thousand entries is searched eighty times a second, and most entries need no
      // closer check.
      if (isFull && !survey.hasStrict) return { ...turn, left: turn.left.concat(queue.slice(at)) };
      const isPassedBy = isFull || !belongs(turn.cargo, entry, survey);
      if (isPassedBy || costOf(entry) > (turn.taken.length === 0 ? Number.POSITIVE_INFINITY : room)) {
        if (survey.hasStrict || !isPassedBy) hold(held, entry, turn.cargo);
        turn.left.push(entry);
      } else if (this.mustWait(entry, held, underWay)) {
        if (turn.cargo === "moves" && underWay.busyShards.has(entry.shard)) entry.passedBy++;
        hold(held, entry, turn.cargo);
        turn.left.push(entry);
      } else {
        room -= costOf(entry);
        this.charge(entry);
        turn.taken.push(entry);
      }
    }
    return turn;
  }

  private mustWait(entry: Entry, held: Held, underWay: UnderWay) {
    const { shard, sort, completes } = entry;
    if (held.all.has(shard) || (underWay.completing && completes)) return true;
    if (held.creates.size > 0 && held.creates.has(shard) && sort !== "move") return true;
    return this.isBehind(entry, held.moves, underWay);
  }

  private findPressed(queue: readonly Entry[], survey: Survey, { busyShards, callersWait }: UnderWay) {
    const mayPress = callersWait || survey.creates >= this.batchSize;
    if (!mayPress && this.shares.size === 0) return;
    const creates = new Map<number, number>();
    const strict = new Set<number>();
    for (const { shard, weight, sort } of queue) {
      creates.set(shard, (creates.get(shard) ?? 0) + (sort === "create" ? weight : 0));
      if (sort === "strict") strict.add(shard);
    }
    const isPressed = (shard: number) =>
      !strict.has(shard) && (callersWait || (creates.get(shard) ?? 0) >= this.batchSize);
    for (const shard of this.shares.keys()) {
      if (!busyShards.has(shard) && !isPressed(shard)) this.shares.delete(shard);
    }
    for (const shard of creates.keys()) if (isPressed(shard) && !this.shares.has(shard)) this.shares.set(shard, 0);
  }

  /**
   * True if a move must wait for its share. A shard with a strict entry has no shares, because that entry must not
   * queue behind a move that has no position yet.
   */
  private isBehind(entry: Entry, movesHeld: ReadonlySet<number>, underWay: UnderWay) {
    const { shard, sort, sinceMs } = entry;
    if (sort === "create") return false;
    if (movesHeld.has(shard)) return true;
    // A late move must be selected: its shard's creates wait for it, so its share cannot grow until it is committed.
    if (isLate(entry)) return false;
    if ((this.shares.get(shard) ?? 1) > 0 || underWay.isHurried(shard)) return false;
    return !underWay.callersWait || underWay.nowMs - sinceMs < PATIENCE_MS;
  }

  private charge({ shard, weight, sort }: Entry) {
    const share = this.shares.get(shard);
    if (share === undefined) return;
    this.shares.set(shard, share + (sort === "create" ? weight : -weight * CREATES_FOR_A_MOVE));
  }
}

/** Summary of the queue, before entries are selected. */
interface Survey {
  /** Number of transactions to create. */
  readonly creates: number;
  /** True if the creates are committed in a transaction of their own. */
  readonly areAlone: boolean;
  readonly hasStrict: boolean;
  /**
   * Shards with a move that was skipped too often and may be committed now. The creates of these shards are committed
   * together with the move, not before it.
   */
  readonly late: ReadonlySet<number>;
}

function surveyOf(queue: readonly Entry[], { busyShards, completing, onlyCreates }: UnderWay): Survey {
  let creates = 0;
  let hasStrict = false;
  const late = new Set<number>();
  for (const entry of queue) {
    if (entry.sort === "create") creates += entry.weight;
    else if (entry.sort === "strict") hasStrict = true;
    else if (isLate(entry) && !(completing && entry.completes)) late.add(entry.shard);
  }
  // If a strict entry is between the late move and the creates, waiting for the move could block the creates for ever:
  // do not treat the shard as late.
  if (hasStrict) for (const { sort, shard } of queue) if (sort === "strict") late.delete(shard);
  const areAlone = areThere(queue, onlyCreates ? 1 : MANY_LANES, [busyShards, late]);
  return { creates, areAlone, hasStrict, late };
}

/**
 * True if creates of at least this many lanes can be committed now: their shards are free, and no strict entry precedes
 * them.
 */
function areThere(queue: readonly Entry[], least: number, taken: readonly ReadonlySet<number>[]) {
  const lanes = new Set<LaneKey>();
  const strict = new Set<number>();
  for (const { sort, key, shard } of queue) {
    if (sort === "strict") strict.add(shard);
    if (sort !== "create" || strict.has(shard) || taken.some((shards) => shards.has(shard))) continue;
    if (lanes.add(key).size >= least) return true;
  }
  return false;
}

function cargoOf({ areAlone }: Survey, { creating, onlyCreates }: UnderWay) {
  if (creating) return "moves";
  return areAlone || onlyCreates ? "creates" : "all";
}

/** Shards with skipped entries: entries that must not overtake those are skipped as well. */
interface Held {
  /** Shards in which nothing may overtake. */
  readonly all: Set<number>;
  /** Shards with skipped moves, which creates may overtake. */
  readonly moves: Set<number>;
  /** Shards whose creates are left for the next transaction of creates alone; moves may overtake them. */
  readonly creates: Set<number>;
}

function hold({ all, moves, creates }: Held, { shard, sort }: Entry, cargo: Cargo) {
  const isForNext = cargo === "moves" && sort === "create";
  (sort === "move" ? moves : isForNext ? creates : all).add(shard);
}

function belongs(cargo: Cargo, { sort, shard }: Entry, { late }: Survey) {
  if (cargo === "all") return true;
  return cargo === "moves" ? sort !== "create" : sort === "create" && !late.has(shard);
}

function isLate({ passedBy }: Entry) {
  return passedBy >= PASSED_BY_AT_MOST;
}

/** Cost of an entry, as the number of places that it takes in a batch. */
function costOf({ weight, sort }: Entry) {
  return sort === "create" ? weight / CREATES_PER_MOVE : weight;
}

/**
 * Takes the creates of these shards out of the queue, in order, as many as fit. Stops at a strict entry, which must
 * come before later creates.
 */
export function createsOf(
  queue: readonly Entry[],
  shards: ReadonlySet<number>,
  most: number,
): { readonly taken: Entry[]; readonly left: Entry[] } {
  const taken: Entry[] = [];
  const held = new Set<number>();
  let room = most;
  const left = queue.filter(({ sort, shard, weight }, at) => {
    if (!shards.has(shard) || sort === "move") return true;
    if (sort !== "create" || held.has(shard) || weight > room) {
      held.add(shard);
      return true;
    }
    room -= weight;
    taken.push(queue[at] as Entry);
    return false;
  });
  return { taken, left };
}
