import type { LaneKey } from "../../domain/lane.ts";
import type { Entry } from "./batch.ts";

/** A create writes its rows blind; a move is looked up first and changes more. So many creates cost what one move does. */
const CREATES_PER_MOVE = 3;
const LEAST_COST = 1 / CREATES_PER_MOVE;

/** If creates press, this many of them are committed for every move. */
const CREATES_FOR_A_MOVE = 8;

/** If callers wait unread, a move that has waited for this long leaves even beyond its share. */
const PATIENCE_MS = 1_000;

/**
 * Creates of so many lanes leave in a transaction of their own, which takes one round trip and a third of the time; what
 * follows transactions that exist goes beside it. Of few lanes, both would only wait for the same locks.
 */
const MANY_LANES = 8;

/** A move whose turn came so often while its shard was in flight leaves with the next creates of the shard. */
const PASSED_BY_AT_MOST = 3;

/** Purpose of a transaction. */
export type Cargo = "creates" | "moves" | "all";

/** Entries in flight, and callers that wait outside. */
export interface UnderWay {
  readonly busyShards: ReadonlySet<number>;
  /** A transaction that ends at the feed's counter row. */
  readonly completing: boolean;
  /** A transaction of creates alone. */
  readonly creating: boolean;
  /** All other slots are in use: only creates may leave, of however few lanes. */
  readonly onlyCreates: boolean;
  /** More callers want to create something than the node has had time to read. */
  readonly callersWait: boolean;
  /** A hand-over, reload or stop waits until nothing of these lanes is open. */
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
 * keeps its place. If a whole batch of creates waits on one lane, creates press: the lane's moves get a share and no
 * more. A caller that wants more than a lane can send is then answered at once, and its transactions wait in the
 * database. The share keeps the moves going. A node that is short of time reads fewer creates at once than a batch
 * holds, and would spend most of its time on the follow-up of the first ones: so creates also press while callers wait
 * to be read. The lanes of those callers are not known then, so every lane's moves wait, for a second at most.
 */
export class Turns {
  private readonly batchSize: number;
  /**
   * Creates of a pressed shard that moves were not yet committed for; below zero if a write was more than its share.
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
      // In a queue of a thousand that is searched eighty times a second, most entries need no closer look, or none at
      // all.
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

  /** Only if nothing strict waits: an entry that must keep its place must not be behind one that has none yet. */
  private isBehind(entry: Entry, movesHeld: ReadonlySet<number>, underWay: UnderWay) {
    const { shard, sort, sinceMs } = entry;
    if (sort === "create") return false;
    if (movesHeld.has(shard)) return true;
    // Its shard's creates wait for it: no share of theirs can grow until it has left.
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

/** Summary of the queue. */
interface Survey {
  /** How many transactions. */
  readonly creates: number;
  /** The creates leave in a transaction of their own. */
  readonly areAlone: boolean;
  readonly hasStrict: boolean;
  /** Shards with a move that was passed by too often and may leave: their creates leave with it, not before it. */
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
  // An entry that keeps its place may be between the two: creates that waited for such a move would wait for
  // themselves.
  if (hasStrict) for (const { sort, shard } of queue) if (sort === "strict") late.delete(shard);
  const areAlone = areThere(queue, onlyCreates ? 1 : MANY_LANES, [busyShards, late]);
  return { creates, areAlone, hasStrict, late };
}

/** True if creates of this many lanes can leave now: their shards are free, and no strict entry is before them. */
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

/** Shards of which something was left: what must not overtake it waits as well. */
interface Held {
  /** Nothing overtakes. */
  readonly all: Set<number>;
  /** Creates overtake. */
  readonly moves: Set<number>;
  /** Left for the next transaction of creates alone: moves overtake. */
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

/** Cost of an entry, in places of a batch. */
function costOf({ weight, sort }: Entry) {
  return sort === "create" ? weight / CREATES_PER_MOVE : weight;
}

/** The creates of these shards, in order, as many as fit; not past what has to keep its place before them. */
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
