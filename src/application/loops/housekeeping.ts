/**
 * Deletes rows that are older than the retention, a little at a time: completions from the feed; the transactions and
 * requested signatures of this node's lanes, each under its lane's fence; those of lanes whose signer no node has any
 * more (such a lane is acquired for this and released); hashes of request ids, if they expire; acknowledged notices; and
 * what people did to subscribers.
 *
 * Reads: lanes with old rows. Writes: see ports/retention-store.ts. Invariants: I5 (a late repeat is refused), I8 (the
 * feed is shortened from its beginning, and reports it). All other work has priority: one small batch at a time, then a
 * pause several times as long; a busy lane is left for the next round. A crash leaves a batch undone, or done.
 */
import { type Fence, type Lane, laneKey } from "../../domain/lane.ts";
import { StoreUnavailable } from "../../ports/lane-store.ts";
import type { LeaseStore } from "../../ports/lease-store.ts";
import type { NoticeStore } from "../../ports/notice-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { RetentionStore } from "../../ports/retention-store.ts";
import { Activity } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

/** Retention settings: the store, and how long rows are kept. */
export interface Retention {
  readonly store: RetentionStore & Pick<NoticeStore, "forgetNotices">;
  readonly ageMs: number;
  /** How long hashes of request ids are kept, in ms; null for ever. */
  readonly requestIdAgeMs: number | null;
}

export interface HousekeepingPorts extends Pick<Ports, "clock" | "telemetry" | "wakeUps"> {
  readonly store: Pick<LeaseStore, "acquireLane" | "releaseLane">;
  /** Retention settings; if absent, nothing is deleted. */
  readonly retention?: Retention;
}

/** Input of one housekeeping round. */
export interface Household {
  readonly lanes: () => readonly OwnedLane[];
  readonly instanceId: () => string;
  readonly signal: AbortSignal;
  readonly onFailed: (error: unknown) => void;
}

/**
 * Interval between two rounds: a thousandth of the retention, but at most a minute. Rows that stay slightly too long do
 * no harm.
 */
const ROUNDS_WITHIN_AGE = 1_000;
const LONGEST_ROUND_MS = 60_000;
const LANES_AT_ONCE = 200;
/** Maximum number of lanes in one batch of deletions: creates of these lanes wait until the batch is done. */
const LANES_OF_A_BATCH = 8;
const ROWS_OF_A_BATCH = 100;
const BATCHES_OF_A_HOLD = 10;
const SMALL_ROWS_OF_A_BATCH = 500;
/** Pause after a batch: `PAUSES` times as long as the batch took, and at least `SHORTEST_PAUSE_MS`. */
const PAUSES = 3;
const SHORTEST_PAUSE_MS = 20;

export class Housekeeping {
  private readonly ports;
  private readonly household;
  private readonly round;
  private dueMs = 0;

  constructor(ports: HousekeepingPorts, household: Household) {
    this.ports = ports;
    this.household = household;
    const { retention } = ports;
    this.round = new Activity(() => (retention === undefined ? null : this.keep(retention)), household.onFailed);
  }

  /** Begins a housekeeping round if one is due. */
  look(): void {
    const { retention, clock } = this.ports;
    const nowMs = clock.monotonicMs();
    if (retention === undefined || nowMs < this.dueMs) return;
    this.dueMs = nowMs + Math.min(LONGEST_ROUND_MS, retention.ageMs / ROUNDS_WITHIN_AGE);
    this.round.kick();
  }

  settled(): Promise<void> {
    return this.round.settled();
  }

  private async keep(retention: Retention) {
    const { store, ageMs, requestIdAgeMs } = retention;
    const { telemetry, clock } = this.ports;
    const { completions, oldestAt } = await this.shortenFeed(retention);
    const transactions = (await this.removeOld(retention)) + (await this.removeAbandoned(retention));
    const requestIds =
      requestIdAgeMs === null
        ? 0
        : await this.batches(() => store.forgetRequestIds(requestIdAgeMs, SMALL_ROWS_OF_A_BATCH));
    await this.batches(() => store.forgetNotices(ageMs, SMALL_ROWS_OF_A_BATCH));
    await this.batches(() => store.forgetSubscriberDecisions(ageMs, SMALL_ROWS_OF_A_BATCH));
    const oldestAgeMs = oldestAt === null ? null : Math.max(0, clock.now().getTime() - oldestAt.getTime());
    telemetry.emit({ type: "retention.round", keptMs: ageMs, transactions, completions, requestIds, oldestAgeMs });
  }

  private async shortenFeed({ store, ageMs }: Retention) {
    let oldestAt: Date | null = null;
    const completions = await this.batches(async () => {
      const shortened = await store.shortenFeed(ageMs, SMALL_ROWS_OF_A_BATCH);
      oldestAt = shortened.oldestAt;
      return shortened.completions;
    });
    return { completions, oldestAt: oldestAt as Date | null };
  }

  /**
   * Deletes old transactions of this node's lanes. Lanes for which the database may have lost commits are left out,
   * because an operator may want to see all of their rows.
   */
  private async removeOld({ store, ageMs }: Retention) {
    const own = this.household.lanes().filter((lane) => lane.ledger.reconciled && !lane.heldByHistory);
    let removed = 0;
    for (const page of inPages(own, LANES_AT_ONCE)) {
      if (this.isOver) break;
      const fences = new Map(page.map(({ lane, fence }) => [laneKey(lane), fence]));
      const found = await store.lanesWithOld(
        page.map(({ lane }) => lane),
        ageMs,
      );
      const old = found.flatMap((lane) => fences.get(laneKey(lane)) ?? []);
      for (const batch of inPages(old, LANES_OF_A_BATCH)) removed += await this.removeOn(store, batch, ageMs);
    }
    return removed;
  }

  /**
   * Deletes old rows of lanes whose key no node has: no node acquires such a lane, so without this its rows would stay
   * for ever.
   */
  private async removeAbandoned({ store, ageMs }: Retention) {
    let removed = 0;
    for (const page of inPages(await store.abandonedLanes(), LANES_AT_ONCE)) {
      if (this.isOver) break;
      for (const lane of await store.lanesWithOld(page, ageMs)) {
        removed += await this.batches(() => this.takeToRemove(store, lane, ageMs));
      }
    }
    return removed;
  }

  /**
   * Acquires an abandoned lane for a few batches at a time: a node that starts with its key meanwhile has to wait for
   * the lane.
   */
  private async takeToRemove(store: RetentionStore, lane: Lane, ageMs: number) {
    const { store: leases, wakeUps } = this.ports;
    const taken = await leases.acquireLane(lane, this.household.instanceId());
    if (taken.result === "notLeader") return 0;
    try {
      return await this.removeOn(store, [taken.fence], ageMs, BATCHES_OF_A_HOLD);
    } finally {
      await leases.releaseLane(taken.fence);
      wakeUps.notify("lanes");
    }
  }

  private removeOn(store: RetentionStore, fences: readonly Fence[], ageMs: number, most?: number) {
    const remove = async () => {
      try {
        return await store.removeOld(fences, ageMs, ROWS_OF_A_BATCH);
      } catch (error) {
        if (error instanceof StoreUnavailable && error.busy) return 0;
        throw error;
      }
    };
    return this.batches(remove, most);
  }

  /**
   * Runs batches one after the other, each followed by a pause, until one deletes nothing. Returns the total number
   * deleted.
   */
  private async batches(work: () => Promise<number>, most = Number.POSITIVE_INFINITY) {
    const { clock } = this.ports;
    let total = 0;
    for (let count = 0; count < most && !this.isOver; count++) {
      const beganMs = clock.monotonicMs();
      const left = await work();
      total += left;
      if (left === 0) break;
      const tookMs = clock.monotonicMs() - beganMs;
      const pauseMs = Math.max(SHORTEST_PAUSE_MS, PAUSES * tookMs);
      await clock.sleep(pauseMs, this.household.signal).catch(() => undefined);
    }
    return total;
  }

  private get isOver() {
    return this.household.signal.aborted;
  }
}

function* inPages<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size);
}
