/**
 * Outcomes of one subscriber that are known and not yet delivered: in order within a lane, side by side across lanes. A
 * lane whose delivery fails waits alone, until the window is full; then the subscriber waits for it.
 *
 * Its durable form is a position and the outcomes above it that are delivered. So a node that takes over repeats only
 * what was delivered after the last write, and nothing is left out.
 */
import { type Lane, type LaneKey, laneKey } from "../lane.ts";
import { AT_ONCE, at, isDue, type When } from "../pace/when.ts";
import type { Progress } from "./subscriber.ts";

/** Most outcomes above the position that are known, delivered or not. It bounds repeats after a crash. */
export const WINDOW = 1_000;

interface Outcome {
  readonly seq: number;
  readonly lane: Lane;
}

interface LaneQueue<T> {
  /** Undelivered outcomes, ascending. The first one may be on its way. */
  readonly waiting: readonly T[];
  readonly isBusy: boolean;
  readonly failures: number;
  readonly failingSince: Date | null;
  readonly retry: When;
}

type Start = Pick<Progress, "position" | "done"> & { readonly failingSince: Date | null };

export class DeliveryWindow<T extends Outcome> {
  /** Undelivered outcomes by sequence number, ascending: they are admitted in this order. */
  private readonly open = new Map<number, T>();
  private readonly lanes = new Map<LaneKey, LaneQueue<T>>();
  private readonly done: Set<number>;
  /** Every outcome up to this number is known. */
  private last: number;
  /** Start of a failure that an earlier owner stored. It belongs to the lowest undelivered outcome. */
  private inherited: Date | null;

  constructor({ position, done, failingSince }: Start) {
    this.last = position;
    this.done = new Set(done);
    this.inherited = failingSince;
  }

  get through(): number {
    return this.last;
  }

  get room(): number {
    this.prune();
    return WINDOW - this.open.size - this.done.size;
  }

  /** Number of outcomes that are known and not delivered. */
  get size(): number {
    return this.open.size;
  }

  get isEmpty(): boolean {
    return this.open.size === 0;
  }

  /** Every outcome up to here is delivered or filtered out. */
  get position(): number {
    const [lowest] = this.open.keys();
    return lowest === undefined ? this.last : lowest - 1;
  }

  /** Start of the longest failure of an undelivered outcome. */
  get failingSince(): Date | null {
    const starts = [...this.lanes.values()].flatMap(({ failingSince }) => failingSince ?? []);
    const [first = this.isEmpty ? null : this.inherited] = starts.sort((a, b) => a.getTime() - b.getTime());
    return first;
  }

  get progress(): Pick<Progress, "position" | "done"> {
    this.prune();
    return { position: this.position, done: [...this.done].sort((a, b) => a - b) };
  }

  /** Adds outcomes that the subscriber wants. `through`: every outcome up to here is known now, wanted or not. */
  admit(outcomes: readonly T[], through: number): void {
    for (const outcome of outcomes) {
      if (outcome.seq <= this.last || this.done.has(outcome.seq)) continue;
      this.open.set(outcome.seq, outcome);
      const known = this.lanes.get(laneKey(outcome.lane));
      const failingSince = this.inherited;
      this.inherited = null;
      const queue = known ?? { waiting: [], isBusy: false, failures: 0, failingSince, retry: AT_ONCE };
      this.lanes.set(laneKey(outcome.lane), { ...queue, waiting: [...queue.waiting, outcome] });
    }
    this.last = Math.max(this.last, through);
  }

  /** True if an outcome may be sent now. */
  mayTake(nowMs: number): boolean {
    for (const { isBusy, retry } of this.lanes.values()) if (!isBusy && isDue(retry, nowMs)) return true;
    return false;
  }

  /** Takes the next outcome that may be sent now; null if there is none. Lanes that have not failed come first. */
  take(nowMs: number): T | null {
    let chosen: LaneQueue<T> | null = null;
    for (const queue of this.lanes.values()) {
      if (queue.isBusy || !isDue(queue.retry, nowMs)) continue;
      if (chosen === null || queue.failures < chosen.failures) chosen = queue;
      if (chosen.failures === 0) break;
    }
    const outcome = chosen?.waiting[0];
    if (chosen === null || outcome === undefined) return null;
    this.lanes.set(laneKey(outcome.lane), { ...chosen, isBusy: true });
    return outcome;
  }

  delivered(outcome: T): void {
    const key = laneKey(outcome.lane);
    this.open.delete(outcome.seq);
    this.done.add(outcome.seq);
    const waiting = this.lanes.get(key)?.waiting.slice(1) ?? [];
    // Delete the lane first, so that it becomes the last one: lanes take turns.
    this.lanes.delete(key);
    if (waiting.length === 0) return;
    this.lanes.set(key, { waiting, isBusy: false, failures: 0, failingSince: null, retry: AT_ONCE });
  }

  /** The outcome was not delivered. `pauseMs`: pause of its lane, by the number of its failures in a row. */
  failed(
    outcome: T,
    { nowMs, now, pauseMs }: { nowMs: number; now: Date; pauseMs: (failures: number) => number },
  ): void {
    const key = laneKey(outcome.lane);
    const queue = this.lanes.get(key);
    if (queue === undefined) return;
    const failures = queue.failures + 1;
    const failingSince = queue.failingSince ?? now;
    this.lanes.set(key, { ...queue, isBusy: false, failures, failingSince, retry: at(nowMs + pauseMs(failures)) });
  }

  /** The receiver works again: lanes that failed are due at once. */
  retryAll(): void {
    for (const [key, queue] of this.lanes) this.lanes.set(key, { ...queue, retry: AT_ONCE });
  }

  /** Earliest time at which a lane that failed is due again; null if none waits. */
  get dueMs(): number | null {
    const times = [...this.lanes.values()].flatMap(({ isBusy, retry }) =>
      !isBusy && retry.kind === "at" ? retry.ms : [],
    );
    return times.length === 0 ? null : Math.min(...times);
  }

  private prune() {
    const { position } = this;
    for (const seq of this.done) if (seq <= position) this.done.delete(seq);
  }
}
