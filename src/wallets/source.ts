import type { Transaction } from "../contract/schemas/transaction-schema.ts";

/** A create request with values as in JSON-RPC: decimal or 0x. */
export interface Intent {
  readonly chainId?: number;
  readonly signer: string;
  readonly requestId: string;
  /** Nonce of the transaction: used exactly, or the request is refused. */
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

/** The part of a Fencepost client that wallet libraries need; `createClient` returns it. */
export interface FencepostSource {
  send(intent: Intent): Promise<{ readonly txId: string }>;
  get(txId: string): Promise<Transaction>;
  list(query: { readonly txHash: string; readonly limit: number }): Promise<{ readonly items: readonly Transaction[] }>;
  waitFor(txId: string, options?: WaitOptions): Promise<Transaction>;
  /** Lanes of a signer. If present, `eth_getTransactionCount(…, "pending")` returns the lane's next nonce. */
  signer?(address: string): Promise<readonly { readonly chainId: number; readonly cursor: number | null }[]>;
}

export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly pollIntervalMs?: number;
}
