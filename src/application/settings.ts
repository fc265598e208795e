import type { FinalityRule } from "../domain/chain/finality.ts";
import type { CeilingSettings } from "../domain/fees/ceilings.ts";
import type { RepricingStrategy } from "../domain/fees/repricing.ts";
import type { Pools } from "../domain/nonces/pool.ts";

/** Settings of the application. `main` reads their values. */
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
  /** Signers under one name. */
  readonly pools: Pools;
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

export interface ChainSettings extends CeilingSettings {
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
  /** Every submission goes to all endpoints that are up, not only to the first. */
  readonly broadcastToAll: boolean;
  /** Null: never resubmit by age. Unknown answers are still asked again. */
  readonly resubmitIntervalMs: number | null;
  /** How long a transaction stays with the private endpoints that were given it; null: until an operator discloses it. */
  readonly publicAfterMs: number | null;
  /** Null: what is not taken is sent again as it is, and never signed at another price. */
  readonly repricing: RepricingStrategy | null;
  /** Payloads signed for one transaction by the lane's loop; 0: no limit. Ends re-signing, never tracking. */
  readonly maxAttempts: number;
  /** How long a transaction may hold up its lane before it is reported as STUCK. */
  readonly stuckAfterMs: number;
  /** How often the head of a lane, once a node took it, is sent again before it is reported as STUCK; 0: age alone decides. */
  readonly stuckAfterResubmits: number;
  readonly inFlightWindow: number;
  readonly blockQueueLength: number;
  /** The most gas that the chain takes in one transaction; null: what is known of it by its id, or learned from a node. */
  readonly maxTransactionGas: bigint | null;
  /** How often each lane is compared with the chain; null: never by itself. */
  readonly reconciliationIntervalMs: number | null;
  /** How long a payload that a node signed out of our sight may stay unfound before it is sent anew. */
  readonly grayZoneTimeoutMs: number;
  /** How often such a payload, or the holder of a consumed nonce, is looked for; null: once, when it is noticed. */
  readonly grayZoneIntervalMs: number | null;
  /** How many blocks are read one by one if a pruned node does not know an older count. */
  readonly grayZoneLookback: number;
  readonly alertLowBalanceWei: bigint | null;
  /** Transactions of a lane that are not final, and their age, from which an alert is raised and the hook is asked. */
  readonly alertPendingDepth: number;
  readonly alertOldestAgeMs: number;
  /** How old the transaction may grow that all others of its lane wait for. */
  readonly alertHeadAgeMs: number;
  readonly alertReserved: number;
  /** A nonce that nothing can use: `heal` takes it with a placeholder or a cancel, `move` only moves down what may move. */
  readonly holePolicy: "move" | "heal";
  /** The nonce of an expired reservation: taken by a placeholder once nothing of its caller's is found, or left to the hole policy. */
  readonly expiredReservations: "placeholder" | "hole";
  /** Placeholders for expired reservations that a lane pays for in one hour, at most. */
  readonly maxReservationRepairs: number;
  /** Nonces of a lane that one key may keep from others at a time. */
  readonly maxReservations: number;
  /** The chain's block explorer; null: by its id, if that is known. */
  readonly explorerUrl: string | null;
  /** How long a reserved nonce is kept by default. */
  readonly reservationTtlMs: number;
}
