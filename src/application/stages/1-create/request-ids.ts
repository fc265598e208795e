/**
 * Stage 1: the idempotency pre-check, shared by creates that come at the same time.
 * Reads: transactions and intake rows by request id. Writes: nothing; the check that binds is stage 2's, under the lane's
 * lock. A crash here leaves nothing behind.
 */
import { type Lane, type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { ExistingTransaction, LaneStore } from "../../../ports/lane-store.ts";

interface Round {
  readonly ids: Set<string>;
  readonly found: Promise<ReadonlyMap<string, ExistingTransaction>>;
}

interface Turn {
  running: Promise<unknown> | null;
  next: Round | null;
}

/**
 * Looks request ids up, one query per lane at a time: whoever asks while a query runs shares the next one. A hundred
 * single creates then cost two reads, not a hundred.
 */
export class RequestIds {
  private readonly store: Pick<LaneStore, "findByRequestIds">;
  private readonly turns = new Map<LaneKey, Turn>();

  constructor(store: Pick<LaneStore, "findByRequestIds">) {
    this.store = store;
  }

  /** Whether a query about this lane is under way or about to be. */
  isAsking(lane: Lane): boolean {
    return this.turns.has(laneKey(lane));
  }

  async find(lane: Lane, ids: readonly string[]): Promise<ReadonlyMap<string, ExistingTransaction>> {
    if (ids.length === 0) return new Map();
    const key = laneKey(lane);
    const turn = this.turns.get(key) ?? { running: null, next: null };
    this.turns.set(key, turn);
    turn.next ??= this.open(lane, turn);
    for (const id of ids) turn.next.ids.add(id);
    return turn.next.found;
  }

  private open(lane: Lane, turn: Turn): Round {
    const ids = new Set<string>();
    const found = this.take(lane, turn, ids);
    found.catch(() => undefined);
    return { ids, found };
  }

  private async take(lane: Lane, turn: Turn, ids: Set<string>): Promise<ReadonlyMap<string, ExistingTransaction>> {
    await Promise.resolve(turn.running).catch(() => undefined);
    turn.next = null;
    const query = this.store.findByRequestIds(lane, [...ids]);
    turn.running = query;
    try {
      const rows = await query;
      return new Map(rows.map((row) => [row.requestId as string, row]));
    } finally {
      if (turn.running === query) turn.running = null;
      if (turn.next === null && turn.running === null) this.turns.delete(laneKey(lane));
    }
  }
}
