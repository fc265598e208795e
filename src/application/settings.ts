import type { FinalityRule } from "../domain/finality.ts";

/** What the application may be told. Where the values come from is main's business. */
export interface NodeSettings {
  readonly nodeId: string;
  readonly url: string;
  readonly version: string;
  readonly mode: "basic" | "worker-queue";
  readonly lease: LeaseSettings;
  readonly writer: WriterSettings;
  /** Creates that may wait on one lane; four times as many on the node. Overflow is answered 429. */
  readonly queueLimit: number;
  readonly drainTimeoutMs: number;
}

export interface LeaseSettings {
  readonly durationMs: number;
  readonly renewIntervalMs: number;
  readonly clockSkewMs: number;
}

export interface WriterSettings {
  readonly batchSize: number;
  readonly batchTimeoutMs: number;
  readonly shards: number;
}

export interface ChainSettings {
  readonly confirmations: number;
  readonly finality: FinalityRule;
  readonly pollIntervalMs: number;
  readonly nonceChainQuery: "latest" | "pending" | "off";
  /** 0: the chain is asked before every batch. */
  readonly nonceStateTimeoutMs: number;
  readonly staleReceiptTimeoutMs: number;
  readonly receiptWorkers: number;
  /** Look for a receipt as soon as a transaction is tracked, for chains whose blocks may be missed. */
  readonly fetchReceiptUponEntry: boolean;
  /** Null: never resubmit by age. Unknown answers are still asked again. */
  readonly resubmitIntervalMs: number | null;
  readonly inFlightWindow: number;
  readonly blockQueueLength: number;
  readonly maxFeeWei: bigint | null;
}
