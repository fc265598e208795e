/**
 * Counts what happens on this node's lanes, and writes it every few seconds as buckets of a minute and of an hour, and
 * as the spend of a day (domain/figures).
 *
 * Only commits that the database has acknowledged are counted, at the time of the acknowledgement. Nothing is written
 * for a single transaction: the buckets of a chain that changed go into a few writes, one after the other, under the
 * fence of one of the chain's lanes. They share neither commit nor lock with transactions, which must go on if
 * statistics cannot be written. A row belongs to the instance that counted it and always has the whole count, so that a
 * repeated write changes nothing.
 *
 * A crash loses what was counted since the last write: a few seconds of statistics. No decision reads them.
 */
import {
  ALL_SIGNERS,
  bucketStart,
  type FigureRow,
  Figures,
  HOUR_S,
  MINUTE_S,
  type Outcome,
  type StoredStep,
} from "../../domain/figures/figures.ts";
import { DAY_S, Spend, type SpendRow } from "../../domain/figures/spend.ts";
import { grouped } from "../../domain/grouped.ts";
import { type Address, type Lane, laneKey } from "../../domain/lane.ts";
import type { Change, Moved } from "../../domain/ledger/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { FigureStore } from "../../ports/figure-store.ts";
import type { LaneChanges } from "../../ports/lane-store.ts";
import type { Telemetry, TelemetryEvent } from "../../ports/telemetry.ts";
import type { OwnedLane } from "./owned-lane.ts";

export interface FigurePorts {
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
  readonly store: Pick<FigureStore, "writeFigures">;
  /** One of this node's lanes on the chain, to write under its fence; null if it owns none. */
  readonly laneOn: (chainId: number) => Pick<OwnedLane, "fence"> | null;
  /** Base fee of the chain's newest block; null if it is not known. */
  readonly baseFeeOn: (chainId: number) => bigint | null;
}

/** How long figures are gathered before they are written. */
const WRITE_EVERY_MS = 10_000;
const MOST_MS = 60_000;
/** Number of rows from which on they are written less often. */
const MANY_ROWS = 2_000;
/** Maximum number of rows in one write, so that it is no heavier than a commit of transactions. */
const ROWS_AT_ONCE = 150;

interface Counted {
  readonly lane: Pick<FigureRow, "chainId" | "signer">;
  /** The minute in which the figures were counted. */
  readonly minute: Date;
  readonly figures: Figures;
}

/** A row that is being counted. */
interface Bucket<Counts = Figures | Spend> {
  readonly place: Pick<FigureRow, "chainId" | "signer" | "at">;
  readonly stepSeconds: StoredStep | typeof DAY_S;
  readonly counts: Counts;
}

export class FigureBook {
  private readonly ports;
  /** Figures by lane that are in no bucket yet. */
  private readonly counted = new Map<string, Counted>();
  /** Buckets of the present minute, hour and day, and earlier ones that are not written yet. */
  private readonly buckets = new Map<string, Bucket>();
  private readonly unwritten = new Set<string>();
  private instanceId = "";
  private lastMinute = new Date(0);
  private dueAtMs: number | null = null;
  private everyMs = WRITE_EVERY_MS;
  private writing: Promise<void> | null = null;

  constructor(ports: FigurePorts) {
    this.ports = ports;
  }

  /** Counts the changes that one commit made to a lane. */
  record({ lane, changes }: Pick<LaneChanges, "lane" | "changes">): void {
    const mined = new Map<string, Moved>();
    let figures: Figures | null = null;
    for (const change of changes) {
      if (change.kind === "moved" && change.item.paid !== undefined) mined.set(change.item.txId, change);
      if (change.kind !== "allocated" && change.kind !== "completed") continue;
      figures ??= this.of(lane);
      if (change.kind === "allocated") figures.created++;
      else complete(figures, change, mined.get(change.completion.txId));
    }
  }

  /** Counts alerts of the telemetry stream, and passes every event on. */
  watching(telemetry: Telemetry): Telemetry {
    return {
      emit: (event) => {
        if (event.type === "alert") this.alerted(event);
        telemetry.emit(event);
      },
    };
  }

  private alerted({ lane, chainId, code }: Extract<TelemetryEvent, { readonly type: "alert" }>) {
    if (lane !== undefined) this.of(lane).trouble(code);
    else if (chainId !== undefined) this.of({ chainId, signer: ALL_SIGNERS }).trouble(code);
  }

  private of(lane: Pick<FigureRow, "chainId" | "signer">): Figures {
    const now = bucketStart(this.ports.clock.now(), MINUTE_S);
    // A clock that was set back must not reopen a bucket that is written and forgotten.
    if (now > this.lastMinute) this.lastMinute = now;
    const minute = this.lastMinute;
    const key = laneKey(lane as Lane);
    const known = this.counted.get(key);
    if (known !== undefined && known.minute.getTime() === minute.getTime()) return known.figures;
    if (known !== undefined) this.file(known);
    const figures = new Figures();
    const baseFee = this.ports.baseFeeOn(lane.chainId);
    if (baseFee !== null) figures.baseFee.add(baseFee);
    this.counted.set(key, { lane, minute, figures });
    this.dueAtMs ??= this.ports.clock.monotonicMs() + this.everyMs;
    return figures;
  }

  /** Adds figures to the buckets of their lane and of their chain, and fees to the lane's day. */
  private file({ lane, minute, figures }: Counted) {
    const row = figures.stored();
    const all: readonly FigureRow["signer"][] = [lane.signer, ALL_SIGNERS];
    for (const signer of new Set(all)) {
      const place = { chainId: lane.chainId, signer };
      for (const step of [MINUTE_S, HOUR_S] as const) this.countsAt(place, minute, step, Figures).merge(row);
    }
    if (row.completed > 0 || row.fees !== 0n) this.countsAt(lane, minute, DAY_S, Spend).add(minute, row);
  }

  /** Counts of the bucket that contains a minute, which is written with the next write. */
  private countsAt<Counts extends Figures | Spend>(
    { chainId, signer }: Counted["lane"],
    minute: Date,
    stepSeconds: Bucket["stepSeconds"],
    Empty: new () => Counts,
  ): Counts {
    const at = bucketStart(minute, stepSeconds);
    const key = `${stepSeconds} ${at.getTime()} ${chainId} ${signer}`;
    const known = this.buckets.get(key) as Bucket<Counts> | undefined;
    const bucket = known ?? { place: { chainId, signer, at }, stepSeconds, counts: new Empty() };
    this.buckets.set(key, bucket);
    this.unwritten.add(key);
    return bucket.counts;
  }

  /** Writes what was counted, if it is time. */
  look(): void {
    if (this.dueAtMs === null || this.ports.clock.monotonicMs() < this.dueAtMs) return;
    void this.write();
  }

  /** Writes everything that was counted; resolves when it is written, or could not be. */
  async write(): Promise<void> {
    while (this.writing !== null) await this.writing;
    for (const each of this.counted.values()) this.file(each);
    this.counted.clear();
    this.dueAtMs = null;
    this.writing = this.writeBuckets().finally(() => {
      this.writing = null;
    });
    await this.writing;
  }

  private async writeBuckets() {
    const rows = this.unwritten.size;
    const byChain = grouped([...this.unwritten], (key) => (this.buckets.get(key) as Bucket).place.chainId);
    for (const [chainId, keys] of byChain) await this.writeOn(chainId, keys);
    this.forget();
    // Ten thousand active lanes are written less often, so that their rows cost no more than those of a thousand.
    this.everyMs = Math.min(MOST_MS, Math.max(WRITE_EVERY_MS, (WRITE_EVERY_MS * rows) / MANY_ROWS));
    if (this.unwritten.size > 0) this.dueAtMs ??= this.ports.clock.monotonicMs() + this.everyMs;
  }

  private async writeOn(chainId: number, keys: readonly string[]) {
    const lane = this.ports.laneOn(chainId);
    if (lane === null) return;
    if (lane.fence.instanceId !== this.instanceId) this.begin(lane.fence.instanceId);
    for (let from = 0; from < keys.length; from += ROWS_AT_ONCE) {
      const isWritten = await this.writeSome(lane, keys.slice(from, from + ROWS_AT_ONCE));
      if (!isWritten) return;
    }
  }

  private async writeSome({ fence }: Pick<OwnedLane, "fence">, keys: readonly string[]) {
    const figures: FigureRow[] = [];
    const spend: SpendRow[] = [];
    for (const key of keys) {
      const bucket = this.buckets.get(key);
      if (bucket === undefined) continue;
      const { place, stepSeconds, counts } = bucket;
      if (counts instanceof Spend) spend.push({ ...place, signer: place.signer as Address, ranks: [...counts.ranks] });
      else figures.push({ ...place, stepSeconds: stepSeconds as StoredStep, ...counts.stored() });
    }
    if (figures.length + spend.length === 0) return true;
    for (const key of keys) this.unwritten.delete(key);
    const isWritten = await this.ports.store.writeFigures(fence, { figures, spend }).catch(() => false);
    if (!isWritten) for (const key of keys) if (this.buckets.has(key)) this.unwritten.add(key);
    return isWritten;
  }

  /** Under another instance id, the counts of earlier rows would be counted twice. */
  private begin(instanceId: string) {
    if (this.instanceId !== "") {
      this.buckets.clear();
      this.unwritten.clear();
    }
    this.instanceId = instanceId;
  }

  /** Removes buckets that are over and written, and those that could not be written for an hour. */
  private forget() {
    const minute = this.lastMinute.getTime();
    for (const [key, { place, stepSeconds }] of this.buckets) {
      const endMs = place.at.getTime() + stepSeconds * 1_000;
      const isOver = endMs <= minute && !this.unwritten.has(key);
      if (!isOver && endMs > minute - HOUR_S * 1_000) continue;
      this.buckets.delete(key);
      this.unwritten.delete(key);
    }
  }
}

type Completed = Extract<Change, { readonly kind: "completed" }>;

function complete(figures: Figures, { completion: { state }, owner }: Completed, moved: Moved | undefined) {
  if (state === "STUCK") figures.stuck++;
  else if (state === "REORGED") figures.withdraw(owner, costOf(moved).fees);
  else figures.complete({ isFailed: state === "FAILED_FINAL", owner, ...costOf(moved) });
}

/** Cost of a final transaction; nothing if none of its own payloads was mined. */
function costOf(moved: Moved | undefined): Pick<Outcome, "fees" | "mined"> {
  const { paid, measured } = moved?.item ?? {};
  if (moved === undefined || paid === undefined || paid.ordinal === null) return { fees: 0n, mined: null };
  if (measured === undefined) return { fees: paid.gasCost, mined: null };
  const ageMs = Math.max(0, moved.at.getTime() - measured.createdAt.getTime());
  return { fees: paid.gasCost, mined: { ageMs, offered: measured.offered } };
}
