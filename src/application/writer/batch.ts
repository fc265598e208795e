import { type Fence, type LaneKey, laneKey, shardOf } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";
import {
  type AllocateResult,
  type AllocateWrite,
  type Committed,
  type HistoryChanged,
  type LaneChanges,
  type LaneWrite,
  OutcomeUnknown,
  type WriteOutcome,
} from "../../ports/lane-store.ts";

export interface Entry {
  readonly write: LaneWrite;
  /** Key of the write's lane. */
  readonly key: LaneKey;
  readonly shard: number;
  readonly weight: number;
  readonly sort: Sort;
  /** True if the write contains a completion, so that it locks the feed's counter row. */
  readonly completes: boolean;
  /**
   * Monotonic time at which the write was given to the writer. Replaced by the time at which it joins the queue, and
   * again if it is queued again.
   */
  sinceMs: number;
  /**
   * How often this write was skipped because another open transaction contained writes of its shard (a group of lanes).
   */
  passedBy: number;
  readonly resolve: (outcome: WriteOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Kind of a write. A "move" changes existing transactions: it neither allocates a nonce nor changes what the lane may
 * do. A "strict" write keeps its position among all writes of its lane.
 */
type Sort = "create" | "move" | "strict";

/** Builds a queue entry; values that the writer needs repeatedly are computed once. */
export function entryOf(
  write: LaneWrite,
  {
    shards,
    nowMs,
    ...delivered
  }: Pick<Entry, "resolve" | "reject"> & { readonly shards: number; readonly nowMs: number },
): Entry {
  const key = laneKey(write.fence.lane);
  const shard = shardOf(key, shards);
  const completes = hasCompletion(write);
  return {
    write,
    key,
    shard,
    weight: weightOf(write),
    sort: sortOf(write),
    completes,
    sinceMs: nowMs,
    passedBy: 0,
    ...delivered,
  };
}

const MOVES: ReadonlySet<LaneWrite["kind"]> = new Set(["transition", "unwatch", "confirmations", "figures"]);

function sortOf({ kind }: LaneWrite): Sort {
  if (kind === "allocate") return "create";
  return MOVES.has(kind) ? "move" : "strict";
}

/** A committed database transaction whose results were not yet delivered to lanes and callers. */
export interface Undelivered extends Committed {
  /** The writes of the transaction. Their outcomes show which are durable and which were fenced. */
  readonly entries: readonly Entry[];
}

/** Queued writes of which only a part was written: the rest is queued again. */
export function unfinishedOf({ entries, outcomes }: Undelivered): readonly Entry[] {
  return entries.filter((_, index) => outcomes[index]?.status === "unfinished");
}

/**
 * Assumed number of rows in a write that ends a lane's watch for reorgs: the number of transactions that one of a
 * thousand busy lanes settles within seconds.
 */
const ENDED_AT_ONCE = 8;

/** Weight of a write: about the number of rows that it changes. The total weight of a batch is limited. */
function weightOf(write: LaneWrite) {
  switch (write.kind) {
    case "allocate":
    case "transition":
      return write.items.length;
    case "settleIntake":
      return write.results.length;
    case "figures":
      return write.rows.length + write.spend.length;
    case "unwatch":
      return ENDED_AT_ONCE;
    default:
      return 1;
  }
}

/**
 * From this number of creates on, they are committed in a database transaction without waiting for more: the server
 * processes them while the next ones are still being read.
 */
export const WORTH_A_COMMIT = 24;

export function isWorthACommit({ sort, weight }: Entry): boolean {
  return sort === "create" && weight >= WORTH_A_COMMIT;
}

/** True if the write locks the feed's counter row. */
function hasCompletion(write: LaneWrite) {
  if (write.kind === "transition") return write.items.some((item) => item.completion !== undefined);
  return write.kind === "settleIntake" && write.results.some((result) => result.result !== "alias");
}

/**
 * Merges allocations of one lane into one, so that single creates cost as little as a batch. Other entries keep their
 * positions.
 */
export function mergeAllocations(entries: readonly Entry[]): readonly Entry[] {
  const open = new Map<LaneKey, { readonly at: number; readonly parts: Entry[] }>();
  const merged: Entry[] = [];
  for (const entry of entries) {
    const group = entry.sort === "create" ? open.get(entry.key) : undefined;
    group?.parts.push(entry);
    if (group !== undefined) continue;
    const at = merged.push(entry) - 1;
    if (entry.sort === "create") open.set(entry.key, { at, parts: [entry] });
  }
  for (const { at, parts } of open.values()) if (parts.length > 1) merged[at] = joinAllocations(parts);
  return merged;
}

function joinAllocations(parts: readonly Entry[]): Entry {
  const writes = parts.map((part) => part.write as AllocateWrite);
  const first = writes[0] as AllocateWrite;
  const floors = writes.flatMap((write) => (write.floor === null ? [] : [write.floor]));
  const fill = [...new Set(writes.flatMap((write) => write.fill ?? []))];
  return {
    ...(parts[0] as Entry),
    write: {
      kind: "allocate",
      fence: first.fence,
      floor: floors.length === 0 ? null : Math.max(...floors),
      ...(fill.length === 0 ? {} : { fill }),
      items: writes.flatMap((write) => write.items),
    },
    weight: parts.reduce((sum, part) => sum + part.weight, 0),
    resolve: (outcome) => deal(outcome, parts),
    reject: rejecting(parts),
  };
}

export function rejecting(parts: readonly Entry[]): Entry["reject"] {
  return (error) => {
    for (const part of parts) part.reject(error);
  };
}

/** Splits the outcome of a merged allocation: each part gets the results of its own items. */
function deal(outcome: WriteOutcome, parts: readonly Entry[]) {
  let from = 0;
  for (const part of parts) {
    const to = from + part.weight;
    part.resolve(outcome.status === "allocated" ? { ...outcome, items: outcome.items.slice(from, to) } : outcome);
    from = to;
  }
}

/**
 * Splits a write into one write per item, so that an invalid item can be found; the results are combined again. A write
 * with a single create is split, too, so that it is refused in the same way.
 */
export function splitEntry(entry: Entry): readonly Entry[] {
  const { write } = entry;
  if (write.kind !== "allocate" && (write.kind !== "transition" || write.items.length < 2)) return [entry];
  const results = new Array<PieceResult>(write.items.length);
  let open = write.items.length;
  const settle = (index: number, result: PieceResult) => {
    results[index] = result;
    if (--open === 0) reassemble(entry, results);
  };
  return write.items.map((item, index) => ({
    ...entry,
    write: { ...write, items: [item] } as LaneWrite,
    weight: 1,
    resolve: (outcome) => settle(index, outcome),
    reject: (error) => settle(index, { error }),
  }));
}

type PieceResult = WriteOutcome | { readonly error: unknown };

function reassemble(entry: Entry, results: readonly PieceResult[]) {
  const failure = results.find((result) => "error" in result && entry.write.kind !== "allocate");
  const fenced = results.find((result) => "status" in result && result.status === "fenced");
  if (failure !== undefined && "error" in failure) entry.reject(failure.error);
  else if (fenced !== undefined && results.some(hasCreated)) {
    entry.reject(new OutcomeUnknown("the lane was lost when part of the batch was committed"));
  } else if (fenced !== undefined) entry.resolve(fenced as WriteOutcome);
  else if (entry.write.kind === "allocate") entry.resolve(reassembleAllocation(results));
  else entry.resolve({ status: "applied", items: results.flatMap(appliedItems) });
}

/**
 * True if a create got a nonce or waits for approval. Then the result must not be "fenced", which would mean that
 * nothing was written.
 */
function hasCreated(result: PieceResult) {
  const isStored = ({ result: outcome }: AllocateResult) => outcome === "created" || outcome === "awaiting";
  return "status" in result && result.status === "allocated" && result.items.some(isStored);
}

function appliedItems(result: PieceResult) {
  return "status" in result && result.status === "applied" ? result.items : [];
}

function reassembleAllocation(results: readonly PieceResult[]): WriteOutcome {
  let cursor = 0;
  const items = results.map((result) => {
    if ("error" in result) return { result: "refused", detail: String(result.error) } as const;
    if (result.status !== "allocated")
      throw new Error(`a nonce allocation returned the status ${result.status} instead of allocated`);
    cursor = Math.max(cursor, result.cursor);
    return result.items[0] as (typeof result.items)[number];
  });
  return { status: "allocated", items, cursor };
}

export interface CommitterEvents {
  /** Called when a commit was acknowledged, before its callers are answered, and for each lane in commit order. */
  onCommitted(changes: LaneChanges): void;
  /** Called when a write was fenced: another node owns the lane. */
  onFenced(fence: Fence, write: LaneWrite["kind"]): void;
  onHistoryChanged(error: HistoryChanged): void;
  /** Called when a write was not made and will not be retried: the database did not accept it in time. */
  onGivenUp(fence: Fence, write: LaneWrite["kind"]): void;
}

interface Delivered {
  readonly entry: Entry;
  readonly outcome: WriteOutcome;
}

/**
 * Maximum number of committed state changes whose callers are resumed in one event-loop turn. More would block the
 * event loop for more than a few milliseconds, because each caller's follow-up work runs right away.
 */
const DELIVERED_AT_ONCE = 16;

/**
 * Delivers the results of committed writes. Lanes get them at once, in commit order, and so do callers of the API.
 * Results of state changes are delivered a few at a time, because the work that follows them occupies the event loop
 * and no API caller waits for it.
 */
export class Delivery {
  private readonly clock: Pick<Clock, "soon">;
  private readonly events: Pick<CommitterEvents, "onCommitted" | "onFenced">;
  private moves: Promise<void> = Promise.resolve();

  constructor(clock: Pick<Clock, "soon">, events: Pick<CommitterEvents, "onCommitted" | "onFenced">) {
    this.clock = clock;
    this.events = events;
  }

  /** Resolves when the results of all writes are delivered, except of those that are only partly written. */
  async deliver(undelivered: readonly Undelivered[]): Promise<void> {
    for (const { changes } of undelivered) for (const each of changes) this.events.onCommitted(each);
    const delivered = undelivered.flatMap(({ entries, outcomes }) =>
      entries.flatMap((entry, index): Delivered[] => {
        const outcome = outcomes[index] as WriteOutcome;
        return outcome.status === "unfinished" ? [] : [{ entry, outcome }];
      }),
    );
    for (const each of delivered) if (each.entry.sort !== "move") this.deliverOne(each);
    const moves = delivered.filter(({ entry }) => entry.sort === "move");
    if (moves.length === 0) return;
    const deliverThese = () => this.deliverInTurns(moves);
    this.moves = this.moves.then(deliverThese, deliverThese);
    await this.moves;
  }

  private async deliverInTurns(moves: readonly Delivered[]) {
    for (let from = 0; from < moves.length; from += DELIVERED_AT_ONCE) {
      if (from > 0) await new Promise<void>((resolve) => this.clock.soon(resolve));
      for (const each of moves.slice(from, from + DELIVERED_AT_ONCE)) this.deliverOne(each);
    }
  }

  private deliverOne({ entry, outcome }: Delivered) {
    if (outcome.status === "fenced") this.events.onFenced(entry.write.fence, entry.write.kind);
    entry.resolve(outcome);
  }
}
