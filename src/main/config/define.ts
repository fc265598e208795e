/**
 * What a configuration file may say. Imported by the files of users (`import { defineConfig } from "fencepost/config"`),
 * so it loads nothing. Every key has an environment variable that overrides it; docs/configuration.md lists both.
 */

/** A number and a unit: `250ms`, `10s`, `5m`, `1h`. */
export type Duration = `${number}${"ms" | "s" | "m" | "h"}`;

/** May be said for all chains at the top, and again for one chain in its entry. */
export interface ChainOptions {
  /** Blocks on top before an outcome is final; 0 is as soon as it is mined. */
  readonly confirmations?: number;
  /** Count confirmations, or trust the chain's own tag. */
  readonly finality?: "confirmations" | "safe" | "finalized";
  /** How often the head is asked for. */
  readonly pollInterval?: Duration;
  /** Which count of the chain takes part in nonce allocation. */
  readonly nonceChainQuery?: "latest" | "pending" | "off";
  /** How long a lane trusts its cached nonce; 0 asks the chain before every batch. */
  readonly nonceStateTimeout?: Duration | 0;
  /** After how long without a receipt the chain is asked directly. */
  readonly staleReceiptTimeout?: Duration;
  /** Receipt look-ups at the same time. */
  readonly receiptWorkers?: number;
  /** Look for a receipt as soon as a transaction is tracked. */
  readonly fetchReceiptUponEntry?: boolean;
  readonly broadcastToAll?: boolean;
  /** After how long without a receipt stored bytes are sent again. */
  readonly resubmitInterval?: Duration | "off";
  /** Payloads signed for one transaction without an operator; 0 is no limit. It is tracked and sent all the same. */
  readonly maxAttempts?: number;
  /** How long a transaction may hold up its lane before it is reported as STUCK. */
  readonly stuckAfter?: Duration;
  /** Sign again at a higher price: following the market (`on`), by equal steps (`linear`), or never. */
  readonly reprice?: "on" | "off" | "linear";
  /** Transactions of a lane at the node beyond the mined nonce. */
  readonly inFlightWindow?: number;
  /** Blocks that may wait for a slow consumer. */
  readonly blockQueueLength?: number;
  /** Ceiling of the fee per gas, also for prices that callers name; without it, one by chain id. */
  readonly maxFeeGwei?: number | string;
  /** Ceiling of gas × fee cap of one transaction, in wei; without it, one by chain id. */
  readonly maxGasCostWei?: number | string;
  /** Ceiling of value + gas × fee cap of one transaction, in wei; without it, value is not bounded. */
  readonly maxCostWei?: number | string;
  /** The most gas that the chain takes in one transaction, where it takes less than a block holds (EIP-7825). */
  readonly maxTransactionGas?: number;
  /** How often each lane is compared with the chain. */
  readonly reconciliationInterval?: Duration | "off";
  /** After how long a payload that a node signed, and that is found nowhere, is sent anew. */
  readonly grayZoneTimeout?: Duration;
  /** How often such a payload is looked for. */
  readonly grayZoneInterval?: Duration | "off";
  /** Blocks that are read one by one where the node has pruned older state. */
  readonly grayZoneLookback?: number;
  /** A nonce that another program used: the transaction fails, or gets another nonce where that is safe. */
  readonly externalUsePolicy?: "fail" | "requeue";
  /** A nonce that nothing can use: closed by what may move down, else said aloud; or taken by a placeholder or a cancel. */
  readonly holePolicy?: "move" | "heal";
  /** How long a reserved nonce is kept where its caller does not say; at most ten minutes. */
  readonly reservationTtl?: Duration;
  /** An alert, and a question to the hook, where more transactions of a lane are not final. */
  readonly alertPendingDepth?: number;
  /** The same where the oldest of them is older. */
  readonly alertOldestAge?: Duration;
  /** The same where the one that all others wait for is older. */
  readonly alertHeadAge?: Duration;
  /** An alert where more nonces of a lane are reserved. */
  readonly alertReserved?: number;
  /** An alert where a signer holds less; in wei. */
  readonly alertLowBalanceWei?: number | string;
}

export interface ChainEntry extends ChainOptions {
  /** Checked against what the endpoints say; without it, theirs is taken. */
  readonly id?: number;
  /** One URL, or several to fail over between. */
  readonly rpc: string | readonly string[];
}

export interface FencepostConfig extends ChainOptions {
  readonly databaseUrl?: string;
  /** The same database past a transaction pooler: where nodes listen for each other's hints. */
  readonly directDatabaseUrl?: string;
  readonly notifications?: "on" | "off";
  readonly preparedStatements?: "auto" | "on" | "off";
  /** One chain. For several, use `chains`. */
  readonly rpcUrl?: string | readonly string[];
  readonly chains?: readonly ChainEntry[];

  readonly privateKeys?: string | readonly string[];
  readonly mnemonic?: string;
  readonly keystoreDir?: string;
  readonly keystorePasswordFile?: string;
  /** Addresses whose keys the chain node holds: it signs them itself (`eth_sendTransaction`). */
  readonly nodeSigners?: string | readonly string[];

  readonly host?: string;
  readonly port?: number;
  readonly nodeId?: string;
  readonly advertiseUrl?: string;
  /** Each as `name:secret`. */
  readonly apiKeys?: string | readonly string[];
  readonly auth?: "keys" | "none";
  readonly mode?: "basic" | "worker-queue";

  readonly leaseDuration?: Duration;
  readonly leaseRenewInterval?: Duration;
  readonly clockSkewAllowance?: Duration;

  readonly batchSize?: number;
  readonly batchTimeout?: Duration;
  readonly writerWorkers?: number;
  readonly queueLimit?: number;
  readonly drainTimeout?: Duration;
  /** Decides what becomes of stuck transactions: a module with a default export, or an https URL. */
  readonly stuckHook?: string;
  /** Signs what is asked of a URL. */
  readonly stuckHookSecret?: string;
  /** Alerts are posted there. */
  readonly alertWebhookUrl?: string;
  /** Without it, by the URL's host: Slack, DingTalk and Feishu are known, all else gets plain JSON. */
  readonly alertWebhookFormat?: "json" | "slack" | "dingtalk" | "feishu";
  readonly logLevel?: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
}

/** Gives a configuration file its types; returns what it is given. */
export function defineConfig(config: FencepostConfig): FencepostConfig {
  return config;
}
