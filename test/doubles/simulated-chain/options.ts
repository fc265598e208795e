import type { Hex } from "../../../src/domain/lane.ts";
import type { PoolRules } from "./pool.ts";
import { type RecoverSender, recoverFromSignature } from "./sender.ts";
import type { SimulatedTransaction } from "./transaction.ts";

export interface SimulatedChainOptions {
  readonly chainId: number;
  readonly pool: Partial<PoolRules>;
  readonly recoverSender: RecoverSender;
  /** Balance of an account that was never changed. */
  readonly defaultBalance: bigint;
  readonly blockGasLimit: bigint;
  /** The most gas of one transaction (EIP-7825); null: as much as a block holds. */
  readonly transactionGasCap: bigint | null;
  /** Null: a chain from before EIP-1559. */
  readonly baseFee: bigint | null;
  /** A pool that refuses what the next block could not take, as anvil's does; geth keeps it. */
  readonly refuseUnderBaseFee: boolean;
  readonly minimumTip: bigint;
  /** Blocks between `latest` and the tags; null if the node has none (no consensus layer). */
  readonly tagDepths: { readonly safe: number; readonly finalized: number } | null;
  /** Distinguishes the blocks of two chains. */
  readonly seed: string;
  /** Seconds, for block headers; nothing decides by it. */
  readonly timestamp: (blockNumber: number) => number;
}

export interface ReorgOptions {
  /** Which of the displaced transactions the new branch leaves out; none by default. */
  readonly drop?: "all" | ((transaction: SimulatedTransaction) => boolean);
  /** True: dropped transactions return to the pool (geth, to depth 64). False: they are forgotten (anvil, EDR). */
  readonly keepInPool?: boolean;
  /** Mined first on the new branch: a competing attempt, say. Taken without asking the pool. */
  readonly include?: readonly Hex[];
  /** Length of the new branch; one more than `depth` by default. */
  readonly newBlocks?: number;
}

export const DEFAULTS: SimulatedChainOptions = {
  chainId: 31_337,
  pool: {},
  recoverSender: recoverFromSignature,
  defaultBalance: 10_000n * 10n ** 18n,
  blockGasLimit: 30_000_000n,
  transactionGasCap: null,
  baseFee: 1_000_000_000n,
  refuseUnderBaseFee: false,
  minimumTip: 0n,
  tagDepths: { safe: 32, finalized: 64 },
  seed: "simulated",
  timestamp: (blockNumber) => 1_700_000_000 + 12 * blockNumber,
};
