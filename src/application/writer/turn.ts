import type { LaneKey } from "../../domain/lane.ts";
import type { Entry } from "./batch.ts";

/**
 * Number of creates that cost as much as one state change of an existing transaction. A create only inserts rows; a
 * state change looks up its row first and changes more.
 */
const CREATES_PER_MOVE = 3;
const LEAST_COST = 1 / CREATES_PER_MOVE;

/** While creates have precedence, this many creates are committed for every state change of an existing transaction. */
const CREATES_FOR_A_MOVE = 8;

/**
 * Limit in ms while callers have requests that the node has not read yet: a state change that has waited this long is
 * committed even if its share is used up.
 */
const PATIENCE_MS = 1_000;

/**
 * From this number of lanes on, creates get a database transaction of their own, which takes one round trip and a third
 * of the time. State changes are committed in another one, in parallel. With fewer lanes, both would only wait for the
 * same row locks.
 */
const MANY_LANES = 8;

/**
 * A state change that was skipped this often, because its shard (a group of lanes) was in an open transaction, is
 * committed together with the shard's next creates.
 */
const PASSED_BY_AT_MOST = 3;

/** Which kinds of queued writes a database transaction may contain. */
export type Cargo = "creates" | "moves" | "all";

/** The open database transactions, and whether callers wait. */
export interface UnderWay {
  readonly busyShards: ReadonlySet<number>;
  /** True if an open database transaction locks the feed's counter row. */
  readonly completing: boolean;
  /** True if a database transaction that contains only creates is open. */
  readonly creating: boolean;
  /**
   * True if all database transactions but the one for creates are in use. Then only creates may start, even if they are
   * of few lanes.
   */
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
 * Selects the queued writes of the next database transaction: in order, as many as fit.
 *
 * Allocations (creates) may overtake state changes of existing transactions ("moves"), since they touch none of those
 * rows; everything else keeps its position. If a whole batch of creates waits on one lane, creates have precedence
 * there, and the lane's moves get only a share. A caller that creates more than a lane can send is then answered at
 * once, and its transactions wait in the database. The share lets the moves progress, too. An overloaded node reads
 * fewer creates at once than a batch holds, and would spend most of its time on the moves of the first ones. So creates
 * also have precedence while requests of callers wait to be read. The lanes of those callers are not known yet, so the
 * moves of every lane wait, for a second at most.
 */
export class Turns {
  private readonly batchSize: number;
  /**
   * Balance of each shard (group of lanes) in which creates have precedence, counted in creates. Committed creates
   * raise it, committed state changes lower it. It is negative if a write exceeded its share.
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
   * True if a state change must wait for its share of the commits. Shares do not apply in a shard that has a strict
   * write, because that write must not wait behind a state change that may be skipped.
   */
  private isBehind(entry: Entry, movesHeld: ReadonlySet<number>, underWay: UnderWay) {
    const { shard, sort, sinceMs } = entry;
    if (sort === "create") return false;
    if (movesHeld.has(shard)) return true;
    // A state change that was skipped too often must be selected now. Its shard's creates wait for it, so its share
    // cannot grow until it is committed.
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
  /** True if the creates are committed in a database transaction of their own. */
  readonly areAlone: boolean;
  readonly hasStrict: boolean;
  /**
   * Shards (groups of lanes) with a state change that was skipped too often and may be committed now. The creates of
   * these shards are committed together with it, not before it.
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
  // If a strict write is queued between such a state change and the creates, waiting for the state change could block
  // the creates for ever. So the shard is not treated as late.
  if (hasStrict) for (const { sort, shard } of queue) if (sort === "strict") late.delete(shard);
  const areAlone = areThere(queue, onlyCreates ? 1 : MANY_LANES, [busyShards, late]);
  return { creates, areAlone, hasStrict, late };
}

/**
 * True if creates of at least this many lanes can be committed now: their shards are in no open transaction, and no
 * strict write precedes them.
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

/**
 * Shards (groups of lanes) in which queued writes were skipped. Later writes that must not overtake the skipped ones
 * are skipped as well.
 */
interface Held {
  /** Shards in which no write may overtake the skipped ones. */
  readonly all: Set<number>;
  /** Shards with skipped state changes; creates may overtake those. */
  readonly moves: Set<number>;
  /**
   * Shards whose creates are left for the next database transaction that contains only creates; state changes may
   * overtake them.
   */
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

/** Cost of a queued write, as the number of places that it takes in a batch. */
function costOf({ weight, sort }: Entry) {
  return sort === "create" ? weight / CREATES_PER_MOVE : weight;
}

/**
 * Takes the creates of these shards out of the queue, in order, as many as fit. In each shard it stops at a strict
 * entry, which must come before later creates.
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
