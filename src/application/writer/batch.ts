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
  /** Key of its lane. */
  readonly key: LaneKey;
  readonly shard: number;
  readonly weight: number;
  readonly sort: Sort;
  /** The write has a completion, so it ends at the feed's counter row. */
  readonly completes: boolean;
  /** When it was given to the writer, and then when it joined the queue. */
  sinceMs: number;
  /** How often its turn came while its shard was in flight. */
  passedBy: number;
  readonly resolve: (outcome: WriteOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Moves follow transactions that exist: they neither give a nonce nor change what the lane may do. What is strict keeps
 * its place among everything of its lane.
 */
type Sort = "create" | "move" | "strict";

/** Values that the writer needs repeatedly are computed once. */
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

function sortOf({ kind }: LaneWrite): Sort {
  if (kind === "allocate") return "create";
  return kind === "transition" || kind === "unwatch" || kind === "confirmations" ? "move" : "strict";
}

/** A successful database transaction that neither lanes nor writers know of yet. */
export interface Undelivered extends Committed {
  /** Durable or fenced, as the outcomes say. */
  readonly entries: readonly Entry[];
}

/** Entries of which only a part is written: the rest is queued again. */
export function unfinishedOf({ entries, outcomes }: Undelivered): readonly Entry[] {
  return entries.filter((_, index) => outcomes[index]?.status === "unfinished");
}

/**
 * Approximate number of transactions at the end of a lane's watch: those that settle within seconds, with a thousand
 * busy lanes.
 */
const ENDED_AT_ONCE = 8;

/** How many rows' worth of work a write is; what a batch is measured by. */
function weightOf(write: LaneWrite) {
  switch (write.kind) {
    case "allocate":
    case "transition":
      return write.items.length;
    case "settleIntake":
      return write.results.length;
    case "unwatch":
      return ENDED_AT_ONCE;
    default:
      return 1;
  }
}

/** This many creates are worth a transaction: the server begins with them while the next ones are still being read. */
export const WORTH_A_COMMIT = 24;

export function isWorthACommit({ sort, weight }: Entry): boolean {
  return sort === "create" && weight >= WORTH_A_COMMIT;
}

/** Writes that end at the feed's counter row. */
function hasCompletion(write: LaneWrite) {
  if (write.kind === "transition") return write.items.some((item) => item.completion !== undefined);
  return write.kind === "settleIntake" && write.results.some((result) => result.result !== "alias");
}

/** Allocations of one lane become one: single creates then cost what a batch costs. The others keep their places. */
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

/** Gives each part its own slice of the joint outcome. */
function deal(outcome: WriteOutcome, parts: readonly Entry[]) {
  let from = 0;
  for (const part of parts) {
    const to = from + part.weight;
    part.resolve(outcome.status === "allocated" ? { ...outcome, items: outcome.items.slice(from, to) } : outcome);
    from = to;
  }
}

/**
 * One entry per item, so that a poison item can be found; the result of the whole is put together from theirs. A single
 * create is refused in the same way.
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

/** A nonce was given, or it waits for approval: the answer must not be "fenced", which means that nothing was written. */
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
    if (result.status !== "allocated") throw new Error(`an allocation ended as ${result.status}`);
    cursor = Math.max(cursor, result.cursor);
    return result.items[0] as (typeof result.items)[number];
  });
  return { status: "allocated", items, cursor };
}

export interface CommitterEvents {
  /**
   * A commit was acknowledged: called before its writers are answered, and for each lane in the order of its commits.
   */
  onCommitted(changes: LaneChanges): void;
  /** A write found its fence broken: another node owns the lane. */
  onFenced(fence: Fence, write: LaneWrite["kind"]): void;
  onHistoryChanged(error: HistoryChanged): void;
  /** A write was not made, and will not be tried again: the database did not take it in time. */
  onGivenUp(fence: Fence, write: LaneWrite["kind"]): void;
}

interface Delivered {
  readonly entry: Entry;
  readonly outcome: WriteOutcome;
}

/** The work after this many moves keeps the event loop busy for a few milliseconds. */
const DELIVERED_AT_ONCE = 16;

/**
 * Delivers the results of writes. Lanes get them at once, in the order of their commits, and so do callers. The work
 * after a move takes its time on the event loop, and no caller waits for it: of many moves a few are answered at a
 * time.
 */
export class Delivery {
  private readonly clock: Pick<Clock, "soon">;
  private readonly events: Pick<CommitterEvents, "onCommitted" | "onFenced">;
  private moves: Promise<void> = Promise.resolve();

  constructor(clock: Pick<Clock, "soon">, events: Pick<CommitterEvents, "onCommitted" | "onFenced">) {
    this.clock = clock;
    this.events = events;
  }

  /** Resolves when all are answered, except those whose write goes on. */
  async deliver(untold: readonly Undelivered[]): Promise<void> {
    for (const { changes } of untold) for (const each of changes) this.events.onCommitted(each);
    const delivered = untold.flatMap(({ entries, outcomes }) =>
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
