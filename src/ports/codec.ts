import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { Message } from "../domain/messages/message.ts";
import type { Checksum } from "../domain/text/checksum.ts";
import type { Fees } from "../domain/transaction/fees.ts";
import type { UnsignedTransaction } from "../domain/transaction/transaction.ts";

/** ABI encoding and decoding: pure functions, behind a port so that the core imports no package. */
export interface Codec {
  /**
   * Parses an address to lower case; throws `BadEncoding` on a wrong length, a non-hex digit, or a mixed-case address
   * whose EIP-55 checksum is wrong.
   */
  parseAddress(text: string): Address;
  /** The address with its EIP-55 checksum, for output. */
  checksum: Checksum;
  /** Address of a contract that an account creates with this nonce (CREATE). */
  contractAddress(deployer: Address, nonce: number): Address;
  /** Encodes a call of a function. Throws `BadEncoding`. */
  encodeCall(callee: Callee, args: readonly unknown[]): Hex;
  /**
   * The functions that `callee` names: one by signature, or every function of the ABI with that name. Throws
   * `BadEncoding`.
   */
  functions(callee: Callee): readonly AbiFunction[];
  /** Encodes a deployment. Throws `BadEncoding` if constructor and arguments do not match. */
  encodeDeploy(bytecode: Hex, abi: readonly unknown[] | undefined, args: readonly unknown[]): Hex;
  /**
   * Decodes the data of a revert by the errors of the ABI, with arguments as JSON; null if no error matches. Never
   * throws.
   */
  decodeError(abi: readonly unknown[], data: Hex): DecodedError | null;
  /** Reads an ABI, as JSON or as signatures, to put calls, errors and logs into words. Throws `BadEncoding`. */
  readWords(abi: readonly unknown[]): AbiWords;
  /**
   * Decodes a signed payload, so that it can be signed again at another price. Rejects with `BadEncoding` (path
   * "rawTransaction").
   */
  decodeTransaction(rawTransaction: Hex): Promise<DecodedTransaction>;
  /** The signed payload in the form in which JSON-RPC shows a pending transaction. Rejects with `BadEncoding`. */
  transactionObject(rawTransaction: Hex): Promise<TransactionObject>;
  /** The 32 bytes that a key signs for a message: EIP-191 for a personal message, EIP-712 for typed data. */
  messageDigest(message: Message): Hash;
}

/** A transaction in the format of `eth_getTransactionByHash`: quantities in hex, null for the block. */
export type TransactionObject = Readonly<Record<string, unknown>>;

/**
 * The function to call: a human-readable signature; an ABI with exactly one matching function; or an ABI with a
 * function's name, or its signature if it is overloaded.
 */
export type Callee = string | readonly unknown[] | { readonly abi: readonly unknown[]; readonly function: string };

export interface AbiFunction {
  /** Four-byte selector of the function. */
  readonly selector: Hex;
  readonly inputs: readonly { readonly name?: string | undefined; readonly type: string }[];
}

/** A call, an error or a log in words. Numbers are decimal digits; addresses have their checksum. */
export interface Words {
  readonly name: string;
  readonly args: readonly { readonly name: string; readonly value: string }[];
}

/** Puts data into words by one ABI; null if the ABI does not have it, or the data does not match. Never throws. */
export interface AbiWords {
  call(data: Hex): Words | null;
  error(data: Hex): Words | null;
  event(topics: readonly Hash[], data: Hex): Words | null;
}

export interface DecodedError {
  readonly name: string;
  /** Arguments of the error. Integers that may exceed a double are decimal digits. */
  readonly args: readonly unknown[];
}

export interface DecodedTransaction {
  /**
   * Transaction type. Blob and delegation payloads (EIP-4844, EIP-7702) have fields that `unsigned` lacks, so they
   * cannot be signed again.
   */
  readonly envelope: Fees["type"] | "eip4844" | "eip7702";
  readonly unsigned: UnsignedTransaction;
  readonly signer: Address;
  readonly txHash: Hash;
  /** EIP-4844 only: the highest price per blob gas, and the blob gas used. */
  readonly blobFeeCap?: bigint;
  readonly blobGas?: bigint;
}

/** Error of encoding or decoding. `path` is relative to the payload: "function", "args.1", "bytecode". */
export class BadEncoding extends Error {
  override readonly name = "BadEncoding";
  readonly path: string;
  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}
