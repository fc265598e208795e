import type { FigureRow, StoredStep } from "../domain/figures/figures.ts";
import type { Address } from "../domain/lane.ts";

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

/** Statistics over time. Nodes write them with `LaneStore.commit`, as writes of the kind `figures`. */
export interface FigureStore {
  figures(stepSeconds: StoredStep, filter: FigureFilter): Promise<readonly FigureRow[]>;
  /** The signers that paid most, counted by whole hours. Only those are found of which spend was written. */
  spenders(filter: FigureFilter, limit: number): Promise<readonly Spender[]>;
}
