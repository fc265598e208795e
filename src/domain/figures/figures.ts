/**
 * Statistics of lanes over time. A bucket has the figures of one lane, or of all lanes of a chain, in one minute or one
 * hour. Figures only add up, so buckets of several lanes, nodes or minutes merge into one.
 */
import type { Address } from "../lane.ts";

export const MINUTE_S = 60;
export const HOUR_S = 3_600;
export type StoredStep = typeof MINUTE_S | typeof HOUR_S;

/** Stored in place of a signer: the figures of all lanes of a chain on one node. */
export const ALL_SIGNERS = "";

/** One bucket as a node stores it. Its values are those that this node has counted, from the bucket's start until now. */
export interface FigureRow {
  readonly stepSeconds: StoredStep;
  readonly at: Date;
  readonly chainId: number;
  readonly signer: Address | typeof ALL_SIGNERS;
  readonly created: number;
  readonly completed: number;
  readonly failed: number;
  readonly fees: bigint;
  readonly detail: FigureDetail;
}

/** Figures that no query of the database needs one by one. Absent: nothing was counted. Wei are decimal digits. */
export interface FigureDetail {
  readonly stuck?: number;
  readonly reorged?: number;
  /** Number of transactions by time to finality; see `slotOf`. */
  readonly finality?: Readonly<Record<string, number>>;
  readonly baseFee?: StoredLevel;
  readonly offered?: StoredLevel;
  /** Spend by API key; the key is null if none was required. */
  readonly keys?: readonly (readonly [key: string | null, completed: number, fees: string])[];
  readonly troubles?: Readonly<Record<string, number>>;
}

type StoredLevel = readonly [sum: string, count: number, max: string];

/** A price over time: its average and its maximum. */
class Level {
  sum = 0n;
  count = 0;
  max = 0n;

  add(price: bigint): void {
    this.merge(price, 1, price);
  }

  merge(sum: bigint, count: number, max: bigint): void {
    this.sum += sum;
    this.count += count;
    if (max > this.max) this.max = max;
  }

  stored(): StoredLevel | undefined {
    return this.count === 0 ? undefined : [`${this.sum}`, this.count, `${this.max}`];
  }

  shown(): { readonly avg: bigint; readonly max: bigint } | null {
    return this.count === 0 ? null : { avg: this.sum / BigInt(this.count), max: this.max };
  }
}

/** A transaction that became final. */
export interface Outcome {
  readonly isFailed: boolean;
  readonly owner: string | null;
  readonly fees: bigint;
  /** Time from create to outcome in ms, and the highest price per gas of the mined payload; null if none was mined. */
  readonly mined: { readonly ageMs: number; readonly offered: bigint } | null;
}

/** Figures that are being counted or merged. */
export class Figures {
  created = 0;
  completed = 0;
  failed = 0;
  stuck = 0;
  reorged = 0;
  fees = 0n;
  readonly baseFee = new Level();
  readonly offered = new Level();
  readonly keys = new Map<string | null, { completed: number; fees: bigint }>();
  readonly troubles = new Map<string, number>();
  private readonly finality = new Map<number, number>();

  complete({ isFailed, owner, fees, mined }: Outcome): void {
    this.completed++;
    if (isFailed) this.failed++;
    this.fees += fees;
    this.spend(owner, 1, fees);
    if (mined === null) return;
    this.offered.add(mined.offered);
    increase(this.finality, slotOf(mined.ageMs), 1);
  }

  /**
   * Counts an outcome that a reorg withdrew: its fees were not paid, and they are counted again with the next outcome.
   * So the fees of a bucket may be below 0.
   */
  withdraw(owner: string | null, fees: bigint): void {
    this.reorged++;
    this.fees -= fees;
    if (fees !== 0n) this.spend(owner, 0, -fees);
  }

  trouble(code: string): void {
    increase(this.troubles, code, 1);
  }

  /** Adds a bucket that was stored, or counted elsewhere. */
  merge(row: Omit<FigureRow, "stepSeconds" | "at" | "chainId" | "signer">): void {
    const { detail } = row;
    this.created += row.created;
    this.completed += row.completed;
    this.failed += row.failed;
    this.fees += row.fees;
    this.stuck += detail.stuck ?? 0;
    this.reorged += detail.reorged ?? 0;
    for (const [slot, count] of Object.entries(detail.finality ?? {})) increase(this.finality, Number(slot), count);
    for (const name of ["baseFee", "offered"] as const) {
      const [sum, count, max] = detail[name] ?? ["0", 0, "0"];
      this[name].merge(BigInt(sum), count, BigInt(max));
    }
    for (const [key, completed, fees] of detail.keys ?? []) this.spend(key, completed, BigInt(fees));
    for (const [code, count] of Object.entries(detail.troubles ?? {})) increase(this.troubles, code, count);
  }

  stored(): Omit<FigureRow, "stepSeconds" | "at" | "chainId" | "signer"> {
    const { created, completed, failed, fees } = this;
    const keys = [...this.keys].map(([key, each]) => [key, each.completed, `${each.fees}`] as const);
    const entries = {
      stuck: this.stuck || undefined,
      reorged: this.reorged || undefined,
      finality: this.finality.size === 0 ? undefined : Object.fromEntries(this.finality),
      baseFee: this.baseFee.stored(),
      offered: this.offered.stored(),
      keys: keys.length === 0 ? undefined : keys,
      troubles: this.troubles.size === 0 ? undefined : Object.fromEntries(this.troubles),
    };
    const known = Object.entries(entries).filter(([, value]) => value !== undefined);
    return { created, completed, failed, fees, detail: Object.fromEntries(known) as FigureDetail };
  }

  /** The time to finality below which this share of the transactions was, to a tenth; null if there were none. */
  finalityMs(share: number): number | null {
    const slots = [...this.finality].sort(([a], [b]) => a - b);
    const total = slots.reduce((sum, [, count]) => sum + count, 0);
    let passed = 0;
    for (const [slot, count] of slots) {
      passed += count;
      if (passed >= total * share) return middleOf(slot);
    }
    return null;
  }

  private spend(owner: string | null, completed: number, fees: bigint) {
    const known = this.keys.get(owner) ?? { completed: 0, fees: 0n };
    this.keys.set(owner, { completed: known.completed + completed, fees: known.fees + fees });
  }
}

/** Slots of the histogram for each doubling of a time: four make an error of at most 10 %. */
const SLOTS_PER_DOUBLING = 4;

/** The slot of a time in a histogram whose slots grow with the time. */
function slotOf(ms: number) {
  return ms <= 1 ? 0 : Math.floor(Math.log2(ms) * SLOTS_PER_DOUBLING);
}

function middleOf(slot: number) {
  return Math.round(2 ** ((slot + 0.5) / SLOTS_PER_DOUBLING));
}

function increase<K>(counts: Map<K, number>, key: K, by: number) {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

/** The start of the bucket that contains a time. */
export function bucketStart(at: Date, stepSeconds: number): Date {
  const stepMs = stepSeconds * 1_000;
  return new Date(Math.floor(at.getTime() / stepMs) * stepMs);
}
