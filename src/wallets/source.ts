import type { Transaction } from "../contract/schemas/transaction-schema.ts";

/** A create request with values as in JSON-RPC: decimal or 0x. */
export interface Intent {
  readonly chainId?: number;
  readonly signer: Hex;
  readonly requestId: string;
  /** Nonce of the transaction: used exactly, or the request is refused. */
  readonly nonce?: number;
  readonly payload: Payload;
}

/** A request to sign a message: a personal one, or typed data in the format of `eth_signTypedData_v4`. */
export type MessageIntent = {
  readonly chainId?: number;
  readonly signer: Hex;
  readonly requestId: string;
} & ({ readonly message: { readonly raw: Hex } } | { readonly typedData: TypedDataInput });

/** Typed data (EIP-712). Integers may be decimal text. */
export interface TypedDataInput {
  readonly domain: Readonly<Record<string, unknown>>;
  readonly types: Readonly<Record<string, readonly { readonly name: string; readonly type: string }[]>>;
  readonly primaryType: string;
  readonly message: Readonly<Record<string, unknown>>;
}

export type Hex = `0x${string}`;
type Quantity = `${bigint}`;

type Priced = {
  readonly value?: Quantity;
  readonly gas?: Quantity;
  readonly gasPrice?: Quantity;
  readonly maxFeePerGas?: Quantity;
  readonly maxPriorityFeePerGas?: Quantity;
  readonly accessList?: { address: Hex; storageKeys: Hex[] }[];
  readonly type?: "legacy" | "eip2930" | "eip1559";
};

export type Payload = Priced & ({ readonly to: Hex; readonly data?: Hex } | { readonly bytecode: Hex });

/** The part of a Fencepost client that wallet libraries need; `createClient` returns it. */
export interface FencepostSource {
  /** Sends a transaction. */
  send(intent: Intent): Promise<{ readonly txId: string }>;
  /** Reads a transaction by its id. */
  get(txId: string): Promise<Transaction>;
  /** Finds a transaction by the hash of any attempt. */
  list(query: { readonly txHash: Hex; readonly limit: number }): Promise<{ readonly items: readonly Transaction[] }>;
  /** Waits until a transaction is final. */
  waitFor(txId: string, options?: WaitOptions): Promise<Transaction>;
  /** Signs a message, if a policy of its signer allows it. If absent, messages are refused. */
  sign?(intent: MessageIntent): Promise<{ readonly signatureId: string; readonly signature: string | null }>;
  /** Lanes of a signer. If present, `eth_getTransactionCount(…, "pending")` returns the lane's next nonce. */
  signer?(address: Hex): Promise<readonly { readonly chainId: number; readonly cursor: number | null }[]>;
}

export interface WaitOptions {
  /** Time limit of the wait in ms. */
  readonly timeoutMs?: number;
  /** Ends the wait when it is aborted. */
  readonly signal?: AbortSignal;
  /** Longest pause between two reads in ms. */
  readonly pollIntervalMs?: number;
}
