import type { FinalityRule } from "../domain/chain/finality.ts";
import type { CeilingSettings } from "../domain/fees/ceilings.ts";
import type { RepricingStrategy } from "../domain/fees/repricing.ts";
import type { Address } from "../domain/lane.ts";
import type { Pools } from "../domain/nonces/pool.ts";
import type { NamedAbi } from "../ports/abi-store.ts";

/** Settings of the application. `main` reads their values from the configuration. */
export interface NodeSettings {
  readonly nodeId: string;
  readonly url: string;
  readonly version: string;
  readonly mode: "basic" | "worker-queue";
  readonly lease: LeaseSettings;
  readonly writer: WriterSettings;
  /** Maximum number of creates that may wait on one lane; four times as many on the node. Further ones get 429. */
  readonly queueLimit: number;
  readonly drainTimeoutMs: number;
  /** Pools of signers: each pool is several signers under one name. */
  readonly pools: Pools;
  /** Names of signers, for people; if absent, no signer has one. */
  readonly signerNames?: ReadonlyMap<Address, string>;
  /** ABIs of the configuration, used for what the database's ABIs do not describe; if absent, there are none. */
  readonly abis?: readonly NamedAbi[];
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
  /**
   * Maximum age in ms of the chain's transaction count that a batch of creates may use; 0 reads the count before every
   * batch.
   */
  readonly nonceStateTimeoutMs: number;
  readonly staleReceiptTimeoutMs: number;
  readonly receiptWorkers: number;
  /**
   * True if a receipt is looked up as soon as a transaction is signed and tracked. For chains whose blocks this node
   * may miss.
   */
  readonly fetchReceiptUponEntry: boolean;
  /** True to send every transaction to all endpoints that are up, not only to the first. */
  readonly broadcastToAll: boolean;
  /**
   * Interval after which the same bytes are resent; null to never resend by age. A send with an unclear response is
   * still repeated.
   */
  readonly resubmitIntervalMs: number | null;
  /**
   * How long a transaction stays with the private endpoints that it was sent to before it is sent to public ones; null
   * if only an operator can disclose it.
   */
  readonly publicAfterMs: number | null;
  /**
   * Repricing strategy; null to resend transactions unchanged and never sign them at another price automatically. An
   * operator still can.
   */
  readonly repricing: RepricingStrategy | null;
  /**
   * Maximum number of payloads that the lane's loop signs for one transaction; 0 for no limit. At the limit no further
   * payload is signed, but the transaction is still tracked.
   */
  readonly maxAttempts: number;
  /** How long a transaction may block its lane before it is reported as STUCK. */
  readonly stuckAfterMs: number;
  /**
   * How often a lane's lowest open transaction is resent, once a node accepted it, before it is reported as STUCK; 0 if
   * only its age counts.
   */
  readonly stuckAfterResubmits: number;
  readonly inFlightWindow: number;
  readonly blockQueueLength: number;
  /**
   * Maximum gas that the chain accepts in one transaction; null to use the cap known for its chain id, or learned from
   * a node.
   */
  readonly maxTransactionGas: bigint | null;
  /** How often each lane is compared with the chain; null to never do it automatically. */
  readonly reconciliationIntervalMs: number | null;
  /** How long a payload that the chain node signed may stay unfound on the chain before it is sent anew. */
  readonly grayZoneTimeoutMs: number;
  /**
   * How often to look for a payload that is not found on the chain, or for the transaction that used one of our nonces.
   * Null: again only after `grayZoneTimeoutMs` for the payload, and after `staleReceiptTimeoutMs` for the nonce.
   */
  readonly grayZoneIntervalMs: number | null;
  /** How many blocks are read one by one if a pruned node cannot return an older count. */
  readonly grayZoneLookback: number;
  readonly alertLowBalanceWei: bigint | null;
  /**
   * Number of a lane's transactions that are not mined, and age of the oldest of them. Above either, an alert is raised
   * and the hook is called.
   */
  readonly alertPendingDepth: number;
  readonly alertOldestAgeMs: number;
  /**
   * How long a transaction may be the lowest open one of its lane, for which all others wait, before an alert is
   * raised.
   */
  readonly alertHeadAgeMs: number;
  readonly alertReserved: number;
  /**
   * What to do with a nonce that no transaction can use. `heal` fills it with a placeholder or a cancel. `move` only
   * moves unsigned transactions down into it.
   */
  readonly holePolicy: "move" | "heal";
  /**
   * The nonce of an expired reservation blocks all higher ones. `placeholder`: a placeholder fills it once no
   * transaction of its caller is found. `hole`: the hole policy decides.
   */
  readonly expiredReservations: "placeholder" | "hole";
  /** Maximum number of placeholders per hour that a lane pays for expired reservations. */
  readonly maxReservationRepairs: number;
  /** Maximum number of nonces of a lane that one API key may have reserved at a time. */
  readonly maxReservations: number;
  /** URL of the chain's block explorer; null to use the one known for its chain id. */
  readonly explorerUrl: string | null;
  /** Default time to live of a reservation. */
  readonly reservationTtlMs: number;
}
