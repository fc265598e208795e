import type { FigureRow, StoredStep } from "../domain/figures/figures.ts";
import type { SpendRow } from "../domain/figures/spend.ts";
import type { Address, Fence } from "../domain/lane.ts";

/** Buckets to read. A range includes `from` and excludes `to`; a limit that is null does not apply. */
export interface FigureFilter {
  readonly from: Date;
  readonly to: Date;
  /** Signers whose buckets are read one by one; null: the sums of whole chains. */
  readonly signers: readonly Address[] | null;
  readonly chains: readonly number[] | null;
}

/** Sum of a signer's completed transactions and fees on one chain. */
export interface Spender {
  readonly signer: Address;
  readonly chainId: number;
  readonly completed: number;
  readonly fees: bigint;
}

/** What an instance counted: buckets of minutes and hours, and the spend of days. */
export interface CountedRows {
  readonly figures: readonly FigureRow[];
  readonly spend: readonly SpendRow[];
}

/**
 * Statistics over time. They are no part of `LaneStore.commit`: if they cannot be written, or their table is locked, no
 * transaction fails or waits.
 */
export interface FigureStore {
  /**
   * Writes buckets of a chain, as the owner of one of its lanes; false if it is no longer the owner. Each row replaces
   * the one that the same instance wrote for the same bucket. A row may be of a lane that the instance no longer owns,
   * because the instance counted only commits.
   */
  writeFigures(fence: Fence, rows: CountedRows): Promise<boolean>;
  figures(stepSeconds: StoredStep, filter: FigureFilter): Promise<readonly FigureRow[]>;
  /** The signers that paid most, counted by whole hours. Only those are found of which spend was written. */
  spenders(filter: FigureFilter, limit: number): Promise<readonly Spender[]>;
}
