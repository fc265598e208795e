import type { Hex } from "../../../src/domain/lane.ts";
import type { PoolRules } from "./pool.ts";
import { type RecoverSender, recoverFromSignature } from "./sender.ts";
import type { SimulatedTransaction } from "./transaction.ts";

export interface SimulatedChainOptions {
  readonly chainId: number;
  readonly pool: Partial<PoolRules>;
  readonly recoverSender: RecoverSender;
  /** The initial balance of every account. */
  readonly defaultBalance: bigint;
  readonly blockGasLimit: bigint;
  /** Gas limit of one transaction (EIP-7825); null if only the block's limit applies. */
  readonly transactionGasCap: bigint | null;
  /** The first base fee; null for a chain before EIP-1559. */
  readonly baseFee: bigint | null;
  /** True if the mempool refuses transactions below the next block's base fee, as anvil does; geth keeps them. */
  readonly refuseUnderBaseFee: boolean;
  readonly minimumTip: bigint;
  /**
   * Distance in blocks from `latest` to `safe` and to `finalized`; null if the node has no such tags (no consensus
   * layer).
   */
  readonly tagDepths: { readonly safe: number; readonly finalized: number } | null;
  /** Seed of the block hashes, so that two chains have different blocks. */
  readonly seed: string;
  /** Block timestamps in seconds; nothing depends on them. */
  readonly timestamp: (blockNumber: number) => number;
}

export interface ReorgOptions {
  /** Transactions of the replaced blocks that the new branch omits; none by default. */
  readonly drop?: "all" | ((transaction: SimulatedTransaction) => boolean);
  /** True: omitted transactions return to the mempool (geth, to depth 64). False: they are forgotten (anvil, EDR). */
  readonly keepInPool?: boolean;
  /** Transactions mined first on the new branch, such as a competing attempt. They bypass the mempool's checks. */
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
