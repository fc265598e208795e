import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { Fees } from "../domain/transaction/fees.ts";
import type { UnsignedTransaction } from "../domain/transaction/transaction.ts";

/** ABI encoding and decoding: pure functions, behind a port so that the core imports no package. */
export interface Codec {
  /** Lower-cases; throws `BadEncoding` on a wrong length, a non-hex digit, or a mixed-case address whose EIP-55 checksum is wrong. */
  parseAddress(text: string): Address;
  /** EIP-55 checksum, for output. */
  checksum(address: Address): string;
  /** Address of a contract that an account creates with this nonce (CREATE). */
  contractAddress(deployer: Address, nonce: number): Address;
  /** Throws `BadEncoding`. */
  encodeCall(callee: Callee, args: readonly unknown[]): Hex;
  /**
   * The functions that may be called: one by signature, or every function of the ABI with that name. Throws
   * `BadEncoding`.
   */
  functions(callee: Callee): readonly AbiFunction[];
  /** Throws `BadEncoding` if constructor and arguments do not match. */
  encodeDeploy(bytecode: Hex, abi: readonly unknown[] | undefined, args: readonly unknown[]): Hex;
  /** The ABI's error that a contract reverted with, its arguments as JSON; null if none matches. Never throws. */
  decodeError(abi: readonly unknown[], data: Hex): DecodedError | null;
  /**
   * Decodes a signed payload, so that it can be signed again at another price. Rejects with `BadEncoding` (path
   * "rawTransaction").
   */
  decodeTransaction(rawTransaction: Hex): Promise<DecodedTransaction>;
  /** The payload as JSON-RPC shows a pending transaction. Rejects with `BadEncoding`. */
  transactionObject(rawTransaction: Hex): Promise<TransactionObject>;
}

/** Format of `eth_getTransactionByHash`: quantities in hex, null for the block. */
export type TransactionObject = Readonly<Record<string, unknown>>;

/**
 * A human-readable signature; an ABI with exactly one matching function; or an ABI with a function's name, or its
 * signature if it is overloaded.
 */
export type Callee = string | readonly unknown[] | { readonly abi: readonly unknown[]; readonly function: string };

export interface AbiFunction {
  /** The four-byte selector. */
  readonly selector: Hex;
  readonly inputs: readonly { readonly name?: string | undefined; readonly type: string }[];
}

export interface DecodedError {
  readonly name: string;
  /** Integers that may exceed a double are decimal digits. */
  readonly args: readonly unknown[];
}

export interface DecodedTransaction {
  /**
   * Blob and delegation payloads (EIP-4844, EIP-7702) have fields that `unsigned` lacks, so they cannot be signed
   * again.
   */
  readonly envelope: Fees["type"] | "eip4844" | "eip7702";
  readonly unsigned: UnsignedTransaction;
  readonly signer: Address;
  readonly txHash: Hash;
  /** EIP-4844 only: the highest price per blob gas, and the blob gas used. */
  readonly blobFeeCap?: bigint;
  readonly blobGas?: bigint;
}

/** `path` is relative to the payload: "function", "args.1", "bytecode". */
export class BadEncoding extends Error {
  override readonly name = "BadEncoding";
  readonly path: string;
  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}
