import type { Fees } from "../domain/fees.ts";
import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { UnsignedTransaction } from "../domain/transaction.ts";

/** What ABI encoding needs from a library: pure functions, kept behind a port so that the core names no package. */
export interface Codec {
  /** Lower-cases; throws `BadEncoding` on a wrong length, a non-hex digit, or a mixed-case address whose EIP-55 checksum is wrong. */
  parseAddress(text: string): Address;
  /** EIP-55, for output. */
  checksum(address: Address): string;
  /** Of what an account deploys with a transaction of this nonce (CREATE). */
  contractAddress(deployer: Address, nonce: number): Address;
  /** Throws `BadEncoding`. */
  encodeCall(callee: Callee, args: readonly unknown[]): Hex;
  /** What is called: by a signature it is one, of an ABI every function that fits the name. Throws `BadEncoding`. */
  functions(callee: Callee): readonly AbiFunction[];
  /** Throws `BadEncoding` where constructor and arguments do not fit. */
  encodeDeploy(bytecode: Hex, abi: readonly unknown[] | undefined, args: readonly unknown[]): Hex;
  /** An error of the ABI that a contract reverted with, its arguments as JSON; null where none of the ABI's fits. Never throws. */
  decodeError(abi: readonly unknown[], data: Hex): DecodedError | null;
  /** What a signed payload says, so that it can be signed again at another price. Rejects with `BadEncoding` (path "rawTransaction"). */
  decodeTransaction(rawTransaction: Hex): Promise<DecodedTransaction>;
  /** The same as JSON-RPC shows a transaction that is in no block yet. Rejects with `BadEncoding` too. */
  transactionObject(rawTransaction: Hex): Promise<TransactionObject>;
}

/** `eth_getTransactionByHash`: quantities in hex, and null where a block would be named. */
export type TransactionObject = Readonly<Record<string, unknown>>;

/**
 * A human-readable signature, an ABI with exactly one function that fits, or an ABI with the one that is meant: its name, or
 * its signature where overloads would fit too.
 */
export type Callee = string | readonly unknown[] | { readonly abi: readonly unknown[]; readonly function: string };

export interface AbiFunction {
  /** Four bytes. */
  readonly selector: Hex;
  readonly inputs: readonly { readonly name?: string | undefined; readonly type: string }[];
}

export interface DecodedError {
  readonly name: string;
  /** Integers that may outgrow a double are decimal digits. */
  readonly args: readonly unknown[];
}

export interface DecodedTransaction {
  /** Blob and delegation payloads (EIP-4844, EIP-7702) say more than `unsigned` can hold: they cannot be signed again. */
  readonly envelope: Fees["type"] | "eip4844" | "eip7702";
  readonly unsigned: UnsignedTransaction;
  readonly signer: Address;
  readonly txHash: Hash;
  /** EIP-4844 alone: what a unit of blob gas may cost, and how many units its blobs take. */
  readonly blobFeeCap?: bigint;
  readonly blobGas?: bigint;
}

/** `path` is relative to the payload: "function", "args.1", "bytecode". */
export class BadEncoding extends Error {
  readonly path: string;
  constructor(path: string, message: string) {
    super(message);
    this.name = "BadEncoding";
    this.path = path;
  }
}
