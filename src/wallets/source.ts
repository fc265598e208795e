import type { Transaction } from "../contract/transaction-schema.ts";

/** A plain transaction, with the values as JSON-RPC has them: decimal or 0x. */
export interface Intent {
  readonly chainId?: number;
  readonly signer: string;
  readonly requestId: string;
  /** Given exactly, or refused. */
  readonly nonce?: number;
  readonly payload: Payload;
}

type Priced = {
  readonly value?: string;
  readonly gas?: string;
  readonly gasPrice?: string;
  readonly maxFeePerGas?: string;
  readonly maxPriorityFeePerGas?: string;
  readonly accessList?: { address: string; storageKeys: string[] }[];
  readonly type?: "legacy" | "eip2930" | "eip1559";
};

export type Payload = Priced & ({ readonly to: string; readonly data?: string } | { readonly bytecode: string });

/** As much of Fencepost as a wallet library needs: what `createClient` makes has it, and more. */
export interface FencepostSource {
  send(intent: Intent): Promise<{ readonly txId: string }>;
  get(txId: string): Promise<Transaction>;
  list(query: { readonly txHash: string; readonly limit: number }): Promise<{ readonly items: readonly Transaction[] }>;
  waitFor(txId: string, options?: WaitOptions): Promise<Transaction>;
  /** Where it is there, `eth_getTransactionCount(…, "pending")` is answered from the lane. */
  signer?(address: string): Promise<readonly { readonly chainId: number; readonly cursor: number | null }[]>;
}

export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly pollIntervalMs?: number;
}
