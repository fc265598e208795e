/**
 * The one writer of a node. All lane writes pass through this queue and are sent in group commits. At most two database
 * transactions are in flight, and beside them one that has only creates. If none is in flight, the next one starts with
 * everything that has arrived by the end of this turn of the event loop; waiting for more would only leave the database
 * idle. Creates that are numerous enough start even before that. If one is in flight, another starts when it is full,
 * when its oldest entry is old enough, or when the one before it has committed. If many small writes arrive (a thousand
 * lanes with one transaction each), commits start at a limited rate, each with the writes gathered by then: a commit
 * costs much the same with one row or fifty.
 *
 * Order: hash(lane) picks a shard, and a shard is never in two transactions at once. So the writes of a lane commit in
 * the order they were given; only allocations may overtake (turn.ts). Completions share one counter row in the
 * database, so at most one of the transactions has completions: a node that is paused while it locks that row delays
 * the others no longer than a lock timeout.
 */

import { type Lane, type LaneKey, laneKey, shardOf } from "../../domain/lane.ts";
import { Departures, Flow } from "../../domain/pace/departures.ts";
import { backoffMs } from "../../domain/pace/when.ts";
import {
  BatchRefused,
  HistoryChanged,
  type LaneStore,
  type LaneWrite,
  NotLoaded,
  OutcomeUnknown,
  StoreUnavailable,
  type WriteOutcome,
} from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { WriterSettings } from "../settings.ts";
import {
  type CommitterEvents,
  Delivery,
  type Entry,
  entryOf,
  isWorthACommit,
  mergeAllocations,
  splitEntry,
  type Undelivered,
  unfinishedOf,
  WORTH_A_COMMIT,
} from "./batch.ts";
import { createsOf, Turns } from "./turn.ts";
import { WaitingRooms } from "./waiting-room.ts";

export interface CommitterPorts extends Pick<Ports, "clock" | "entropy" | "telemetry"> {
  readonly store: Pick<LaneStore, "commit">;
  /** True if callers want to create more than this node has had time to read. If absent, no callers wait. */
  readonly callersWait?: () => boolean;
}

/** Waits for the end of all open writes, because a lane is handed over or reloaded, or the node stops. */
interface IdleWaiter {
  /** Lane to wait for; null for all lanes. */
  readonly key: LaneKey | null;
  readonly shard: number | null;
  readonly resolve: () => void;
}

/** Maximum number of transactions in flight, not counting one of creates alone. */
const MAX_IN_FLIGHT = 2;
/**
 * Minimum interval between small commits. A transaction needs five writes, from its create until it is no longer
 * watched for reorgs; at this rate a thousand transactions a second share commits.
 */
const COMMIT_EVERY_MS = 16;
/** Number of commits that may start without waiting: one more than a transaction needs until it is sent. */
const COMMITS_IN_RESERVE = 4;
/**
 * Longer intervals while creates of many lanes have transactions of their own: both kinds of writes gather for longer.
 * Moves gather the longest, because no caller waits for them.
 */
const CREATES_ALONE = 1.5;
const MOVES_EVERY_MS = 40;
/**
 * Writes per second above which small commits are gathered, not counting delayed writes. A thousand lanes with one
 * transaction per second each make three thousand. Ten lanes with half as many transactions make a third as many
 * writes, because each write has several transactions. Those are committed sooner, since the database has capacity for
 * more commits.
 */
const WRITES_TO_GATHER = 1_900;
/** Queued writes that must wait for creates or for another write of their lane are checked again after this many ms. */
const LOOK_AGAIN_MS = 20;
const nothing = async (): Promise<void> => undefined;
const BUSY_RETRIES = 8;
const BUSY_BACKOFF = { firstMs: 10, mostMs: 250 };

export class Committer {
  private readonly ports: CommitterPorts;
  private readonly settings: WriterSettings;
  private readonly events: CommitterEvents;
  private queue: Entry[] = [];
  private queuedItems = 0;
  private inFlight = 0;
  private completing = false;
  /** True while a transaction of creates alone is in flight. */
  private creating = false;
  private readonly busyShards = new Set<number>();
  private readonly turns: Turns;
  private readonly flow = new Flow(WRITES_TO_GATHER);
  private readonly pace = new Departures(COMMIT_EVERY_MS, COMMITS_IN_RESERVE, this.flow);
  private readonly movesPace = new Departures(MOVES_EVERY_MS, 1, this.flow);
  private isFlushedSoon = false;
  /** True if nothing in the queue could be selected. New writes of shards in flight then do not search it again. */
  private isHeldUp = false;
  private cancelTimer: (() => void) | null = null;
  private readonly rooms = new WaitingRooms();
  private leaving: { readonly atMs: number; readonly cancel: () => void } | null = null;
  /** Batches that are in a database transaction, or being answered. */
  private readonly underWay = new Set<readonly Entry[]>();
  private idleWaiters: IdleWaiter[] = [];
  private notifyingSoon: Promise<void> | null = null;
  private readonly delivery: Delivery;

  constructor(ports: CommitterPorts, settings: WriterSettings, events: CommitterEvents) {
    this.ports = ports;
    this.settings = settings;
    this.events = events;
    this.turns = new Turns(settings.batchSize);
    this.delivery = new Delivery(ports.clock, events);
  }

  /** Number of queued items that are not in a transaction yet. */
  get depth(): number {
    return this.queuedItems;
  }

  /** Queues a write; resolves with its result once it is durable, or rejects with the store's error. */
  write(write: LaneWrite): Promise<WriteOutcome> {
    return new Promise((resolve, reject) => {
      const nowMs = this.ports.clock.monotonicMs();
      const entry = entryOf(write, { shards: this.settings.shards, nowMs, resolve, reject });
      if (this.rooms.admit(entry)) {
        this.leaveLater();
        return;
      }
      this.flow.add(nowMs, 1);
      this.queueAll(this.rooms.before(entry));
      this.queueUp(entry);
    });
  }

  /** Resolves when nothing is queued or in flight; if a lane is given, for that lane only. */
  async idle(lane?: Lane): Promise<void> {
    const key = lane === undefined ? null : laneKey(lane);
    this.queueAll(key === null ? this.rooms.leaveBefore(Number.POSITIVE_INFINITY) : this.rooms.all(key));
    this.leaveLater();
    const shard = key === null ? null : shardOf(key, this.settings.shards);
    const notified = new Promise<void>((resolve) => this.idleWaiters.push({ key, shard, resolve }));
    // Notify all callers of one event-loop turn together: a node that shuts down calls this method for each of ten
    // thousand lanes.
    this.notifyingSoon ??= Promise.resolve().then(() => {
      this.notifyingSoon = null;
      this.notifyIdle();
    });
    await notified;
  }

  private queueAll(entries: readonly Entry[]) {
    for (const entry of entries) this.queueUp(entry);
  }

  private queueUp(entry: Entry) {
    entry.sinceMs = this.ports.clock.monotonicMs();
    this.queue.push(entry);
    this.queuedItems += entry.weight;
    this.schedule(entry);
  }

  /** Sends delayed writes once they have waited long enough for others to join them. */
  private leaveLater() {
    const { clock } = this.ports;
    const atMs = this.rooms.nextLeaveMs;
    if (this.leaving !== null && atMs !== null && this.leaving.atMs <= atMs) return;
    this.leaving?.cancel();
    this.leaving = null;
    if (atMs === null) return;
    const leave = () => {
      this.leaving = null;
      this.queueAll(this.rooms.leaveBefore(clock.monotonicMs()));
      this.leaveLater();
    };
    this.leaving = { atMs, cancel: clock.after(Math.max(0, atMs - clock.monotonicMs()), leave) };
  }

  private notifyIdle() {
    const open = new Set<LaneKey>();
    for (const batch of [this.queue, ...this.underWay]) for (const { key } of batch) open.add(key);
    const isOpen = (key: LaneKey | null) => this.rooms.has(key) || (key === null ? open.size > 0 : open.has(key));
    const ready = this.idleWaiters.filter(({ key }) => !isOpen(key));
    this.idleWaiters = this.idleWaiters.filter(({ key }) => isOpen(key));
    for (const waiter of ready) waiter.resolve();
  }

  /** True if two transactions are in flight besides one of creates alone: then only creates may start. */
  private get isOnlyForCreates() {
    return this.inFlight - (this.creating ? 1 : 0) >= MAX_IN_FLIGHT;
  }

  private schedule(entry: Entry) {
    const { sort, shard } = entry;
    if (this.isOnlyForCreates && (this.creating || sort !== "create")) return;
    const isHeldUp = this.creating || (this.isHeldUp && this.busyShards.has(shard));
    const isFull = this.queuedItems >= this.settings.batchSize && !isHeldUp;
    if (isFull || (isWorthACommit(entry) && this.inFlight === 0)) {
      this.flush();
      return;
    }
    if (this.inFlight === 0) this.flushSoon();
    else this.flushLater(isHeldUp ? LOOK_AGAIN_MS : this.settings.batchTimeoutMs);
  }

  private flushSoon() {
    if (this.isFlushedSoon) return;
    this.isFlushedSoon = true;
    this.ports.clock.soon(() => {
      this.isFlushedSoon = false;
      this.flushInTurn();
    });
  }

  private flushLater(ms: number) {
    if (this.cancelTimer !== null) return;
    this.cancelTimer = this.ports.clock.after(ms, () => {
      this.cancelTimer = null;
      this.flushInTurn();
    });
  }

  /** Starts a transaction now, or when the rate allows it. */
  private flushInTurn() {
    const pace = this.creating ? this.movesPace : this.pace;
    const waitMs = pace.waitMs(this.ports.clock.monotonicMs());
    if (waitMs === 0 || (this.isFull && !this.creating)) this.flush();
    else this.flushLater(waitMs);
  }

  /** True if the batch is full, or its creates alone justify a transaction. */
  private get isFull() {
    if (this.queuedItems >= this.settings.batchSize) return true;
    let creates = 0;
    for (const { sort, weight } of this.queue) if (sort === "create") creates += weight;
    return creates >= WORTH_A_COMMIT;
  }

  private flush() {
    if (this.isOnlyForCreates && this.creating) return;
    const { taken: batch, cargo } = this.take();
    this.isHeldUp = batch.length === 0;
    if (batch.length === 0) {
      if (this.queue.length > 0 && this.inFlight === 0) this.flushLater(LOOK_AGAIN_MS);
      return;
    }
    const shards = new Set(batch.map((entry) => entry.shard));
    const completing = batch.some(({ completes }) => completes);
    for (const shard of shards) this.busyShards.add(shard);
    if (completing) this.completing = true;
    if (cargo === "creates") this.creating = true;
    this.inFlight++;
    const nowMs = this.ports.clock.monotonicMs();
    if (cargo === "moves") this.movesPace.left(nowMs);
    else this.pace.left(nowMs, cargo === "creates" ? CREATES_ALONE : 1);
    void this.commit(batch, () => {
      for (const shard of shards) this.busyShards.delete(shard);
      if (completing) this.completing = false;
      if (cargo === "creates") this.creating = false;
      this.inFlight--;
      this.isHeldUp = false;
      if (this.queue.length > 0) this.goOn();
    });
    if (cargo === "creates" && this.queue.length > 0) this.flushInTurn();
  }

  /** Starts the next transaction; a few creates wait for the end of this event-loop turn, which often brings more. */
  private goOn() {
    const isFew = this.queuedItems < WORTH_A_COMMIT && this.queue.every(({ sort }) => sort === "create");
    if (isFew && this.inFlight === 0) this.flushSoon();
    else this.flushInTurn();
  }

  private take() {
    const { busyShards, completing, creating, ports } = this;
    const callersWait = ports.callersWait?.() ?? false;
    const isHurried = (shard: number) => this.idleWaiters.some((each) => each.shard === null || each.shard === shard);
    const nowMs = ports.clock.monotonicMs();
    const onlyCreates = this.isOnlyForCreates;
    const underWay = { busyShards, completing, creating, onlyCreates, callersWait, isHurried, nowMs };
    const turn = this.turns.next(this.queue, underWay);
    this.queue = turn.left;
    for (const { weight } of turn.taken) this.queuedItems -= weight;
    return turn;
  }

  /** `over` starts the next transaction before callers are answered, but after a failure only when `fail` is done. */
  private async commit(batch: Entry[], over: () => void) {
    const started = this.ports.clock.monotonicMs();
    const undelivered: Undelivered[] = [];
    this.underWay.add(batch);
    const failure = await this.commitOrBisect(batch, undelivered, () => this.letCreatesPass(batch)).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    const durationMs = this.ports.clock.monotonicMs() - started;
    if (failure === null) {
      over();
      this.queueAll(undelivered.flatMap(unfinishedOf));
    }
    await this.delivery.deliver(undelivered);
    if (failure !== null) {
      this.fail(batch, failure.error, undelivered.length > 0);
      over();
    }
    this.underWay.delete(batch);
    if (this.idleWaiters.length > 0) this.notifyIdle();
    const items = batch.reduce((sum, entry) => sum + entry.weight, 0);
    this.ports.telemetry.emit({ type: "writer.flushed", items, writes: batch.length, durationMs });
  }

  /**
   * Commits a batch so that one invalid item does not fail the others: halves are tried in order until the invalid item
   * is alone. If a write cannot be decided because a row was not loaded, the whole write fails: its requests must not
   * be reported as invalid.
   */
  private async commitOrBisect(batch: readonly Entry[], undelivered: Undelivered[], beforeRetry = nothing) {
    try {
      undelivered.push(await this.commitPatiently(batch, beforeRetry));
    } catch (error) {
      if (!(error instanceof BatchRefused || error instanceof NotLoaded)) throw error;
      const isWhole = batch.length > 1 || error instanceof NotLoaded;
      const pieces = isWhole ? batch : splitEntry(batch[0] as Entry);
      if (pieces.length === 1) {
        this.ports.telemetry.emit({ type: "writer.failed", items: 1, reason: String(error) });
        (pieces[0] as Entry).reject(error);
        return;
      }
      const middle = Math.ceil(pieces.length / 2);
      await this.commitOrBisect(pieces.slice(0, middle), undelivered);
      await this.commitOrBisect(pieces.slice(middle), undelivered);
    }
  }

  /** Commits a batch; retries it after a lock, idle or statement timeout, which committed nothing. */
  private async commitPatiently(batch: readonly Entry[], beforeRetry: () => Promise<void>): Promise<Undelivered> {
    for (let failures = 1; ; failures++) {
      const merged = mergeAllocations(batch);
      try {
        return { entries: merged, ...(await this.ports.store.commit(merged.map(({ write }) => write))) };
      } catch (error) {
        if (!(error instanceof StoreUnavailable && error.busy) || failures > BUSY_RETRIES) throw error;
        const reason = error.message;
        this.ports.telemetry.emit({ type: "writer.busy", writes: merged.length, tries: failures, reason });
        await beforeRetry();
        await this.ports.clock.sleep(backoffMs(BUSY_BACKOFF, failures, this.ports.entropy.random()));
      }
    }
  }

  /**
   * Lets creates pass a transaction that is being retried: its own creates, and those queued behind it for its lanes.
   * They touch none of its rows. Alone they need only one round trip, so they succeed even on a machine so overloaded
   * that the server aborts every transaction that needs two.
   */
  private async letCreatesPass(batch: Entry[]) {
    const moves = batch.filter(({ sort }) => sort === "move");
    const own = batch.filter(({ sort }) => sort === "create");
    if (moves.length === 0 || moves.length + own.length < batch.length) return;
    const { taken, left } = createsOf(this.queue, new Set(batch.map(({ shard }) => shard)), this.settings.batchSize);
    const creates = [...own, ...taken];
    if (creates.length === 0) return;
    this.queue = left;
    for (const { weight } of taken) this.queuedItems -= weight;
    batch.splice(0, batch.length, ...moves);
    await this.commit(creates, () => undefined);
  }

  /**
   * Writes queued behind a failed one of the same lane assume its result: they fail with it, and the lane is reloaded.
   * While a refused batch is being split, some of its pieces may already be durable: their callers get
   * `OutcomeUnknown`, never an answer that nothing happened.
   */
  private fail(batch: readonly Entry[], error: unknown, partlyCommitted: boolean) {
    const lanes = new Set(batch.map(({ key }) => key));
    const queued = this.queue.filter(({ key }) => lanes.has(key));
    this.queue = this.queue.filter(({ key }) => !lanes.has(key));
    for (const entry of queued) this.queuedItems -= entry.weight;
    const doomed = [...queued, ...[...lanes].flatMap((lane) => this.rooms.movesOf(lane))];
    if (error instanceof HistoryChanged) this.events.onHistoryChanged(error);
    if (error instanceof StoreUnavailable && !partlyCommitted) {
      for (const { write } of mergeAllocations([...batch, ...doomed])) this.events.onGivenUp(write.fence, write.kind);
    }
    this.ports.telemetry.emit({ type: "writer.failed", items: batch.length + doomed.length, reason: String(error) });
    const result = partlyCommitted ? new OutcomeUnknown("part of the batch was committed", { cause: error }) : error;
    for (const entry of batch) entry.reject(result);
    for (const entry of doomed) entry.reject(new StoreUnavailable("the lane's earlier write failed", { cause: error }));
  }
}
