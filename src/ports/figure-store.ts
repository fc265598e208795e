import type { FigureRow, StoredStep } from "../domain/figures/figures.ts";
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
  writeFigures(fence: Fence, rows: readonly FigureRow[]): Promise<boolean>;
  figures(stepSeconds: StoredStep, filter: FigureFilter): Promise<readonly FigureRow[]>;
  /** The signers that paid most, counted by whole hours. */
  spenders(filter: FigureFilter, limit: number): Promise<readonly Spender[]>;
}
