import type { LaneKey } from "../../domain/lane.ts";
import type { LaneWrite } from "../../ports/lane-store.ts";
import { type Entry, hasCompletion } from "./batch.ts";

/** A create writes its rows blind; a move is looked up first and changes more. So many creates cost what one move does. */
const CREATES_PER_MOVE = 3;

/** Where creates press, this many of them are committed for every move. */
const CREATES_FOR_A_MOVE = 8;

/** Where callers wait unread, a move that has waited for so long leaves whatever its share is. */
const PATIENCE_MS = 1_000;

/**
 * Creates of so many lanes leave in a transaction of their own, which takes one round trip and a third of the time; what
 * follows transactions that exist goes beside it. Of few lanes, both would only wait for the same locks.
 */
const MANY_LANES = 8;

/** What a transaction is for. */
export type Cargo = "creates" | "moves" | "all";

/** What is in flight, and what waits outside. */
export interface UnderWay {
  readonly busyShards: ReadonlySet<number>;
  /** A transaction that ends at the feed's counter row. */
  readonly completing: boolean;
  /** A transaction of creates alone. */
  readonly creating: boolean;
  /** More callers want to create something than the node has had time to read. */
  readonly callersWait: boolean;
  /** Somebody waits until nothing of these lanes is open. */
  readonly isHurried: (shard: number) => boolean;
  readonly nowMs: number;
}

export interface Turn {
  readonly cargo: Cargo;
  readonly taken: Entry[];
  readonly left: Entry[];
}

/**
 * Which of the queued writes the next transaction takes: in order, as many as fit.
 *
 * Allocations may overtake what follows transactions that exist, since they touch none of those rows; everything else
 * keeps its place. Where a whole batch of creates waits on one lane, the others get a share and no more: who asks for
 * more than a lane can send is answered at once and waits in the database, instead of waiting for the answer behind all
 * that was asked before. The share is what keeps that moving. A node that is short of time reads fewer creates at once
 * than a batch holds, and would spend most of its time on what follows the first of them: so creates press, too, while
 * callers wait to be read. Which lanes they want is not known then, so every lane's moves wait, but for a second at most.
 */
export class Turns {
  private readonly batchSize: number;
  /** Creates of a pressed shard that moves were not yet committed for; below zero where a write was more than its share. */
  private readonly shares = new Map<number, number>();

  constructor(batchSize: number) {
    this.batchSize = batchSize;
  }

  next(queue: readonly Entry[], underWay: UnderWay): Turn {
    const { busyShards, completing } = underWay;
    this.findPressed(queue, underWay);
    const cargo = cargoOf(queue, underWay);
    const turn: Turn = { cargo, taken: [], left: [] };
    const held = new Set(busyShards);
    const movesHeld = new Set<number>();
    const createsHeld = new Set<number>();
    let room = this.batchSize;
    for (const entry of queue) {
      const { write, shard } = entry;
      const fits = turn.taken.length === 0 || costOf(entry) <= room;
      const queuesUp = completing && hasCompletion(write);
      const isElsewhere = !belongs(cargo, write) || (createsHeld.has(shard) && !isMove(write));
      if (held.has(shard) || isElsewhere || !fits || queuesUp || this.isBehind(entry, movesHeld, underWay)) {
        const waiting = isMove(write) ? movesHeld : cargo === "moves" && write.kind === "allocate" ? createsHeld : held;
        waiting.add(shard);
        turn.left.push(entry);
      } else {
        room -= costOf(entry);
        this.charge(entry);
        turn.taken.push(entry);
      }
    }
    return turn;
  }

  private findPressed(queue: readonly Entry[], { busyShards, callersWait }: UnderWay): void {
    const creates = new Map<number, number>();
    const strict = new Set<number>();
    for (const { shard, weight, write } of queue) {
      creates.set(shard, (creates.get(shard) ?? 0) + (write.kind === "allocate" ? weight : 0));
      if (write.kind !== "allocate" && !isMove(write)) strict.add(shard);
    }
    const isPressed = (shard: number) =>
      !strict.has(shard) && (callersWait || (creates.get(shard) ?? 0) >= this.batchSize);
    for (const shard of this.shares.keys()) {
      if (!busyShards.has(shard) && !isPressed(shard)) this.shares.delete(shard);
    }
    for (const shard of creates.keys()) if (isPressed(shard) && !this.shares.has(shard)) this.shares.set(shard, 0);
  }

  /** Only where nothing strict waits: what has to keep its place must not stand behind what has none yet. */
  private isBehind({ shard, write, sinceMs }: Entry, movesHeld: ReadonlySet<number>, underWay: UnderWay): boolean {
    if (write.kind === "allocate") return false;
    if (movesHeld.has(shard)) return true;
    if ((this.shares.get(shard) ?? 1) > 0 || underWay.isHurried(shard)) return false;
    return !underWay.callersWait || underWay.nowMs - sinceMs < PATIENCE_MS;
  }

  private charge({ shard, weight, write }: Entry): void {
    const share = this.shares.get(shard);
    if (share === undefined) return;
    this.shares.set(shard, share + (write.kind === "allocate" ? weight : -weight * CREATES_FOR_A_MOVE));
  }
}

function cargoOf(queue: readonly Entry[], { busyShards, creating }: UnderWay): Cargo {
  if (creating) return "moves";
  const lanes = new Set<LaneKey>();
  let hasOthers = false;
  for (const { write, key, shard } of queue) {
    if (busyShards.has(shard)) continue;
    if (write.kind === "allocate") lanes.add(key);
    else hasOthers = true;
    if (hasOthers && lanes.size >= MANY_LANES) return "creates";
  }
  return "all";
}

function belongs(cargo: Cargo, { kind }: LaneWrite): boolean {
  return cargo === "all" || (cargo === "creates") === (kind === "allocate");
}

/** In places of a batch. */
function costOf({ weight, write }: Entry): number {
  return write.kind === "allocate" ? weight / CREATES_PER_MOVE : weight;
}

/** Follows transactions that exist: neither gives a nonce nor changes what the lane may do. */
export function isMove({ kind }: LaneWrite): boolean {
  return kind === "transition" || kind === "unwatch" || kind === "confirmations";
}
