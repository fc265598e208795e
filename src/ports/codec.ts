import type { Address, Hex } from "../domain/lane.ts";

/** What ABI encoding needs from a library: pure functions, kept behind a port so that the core names no package. */
export interface Codec {
  /** Lower-cases; throws `BadEncoding` on a wrong length, a non-hex digit, or a mixed-case address whose EIP-55 checksum is wrong. */
  parseAddress(text: string): Address;
  /** EIP-55, for output. */
  checksum(address: Address): string;
  /** `functionOrAbi` is a human-readable signature or a JSON ABI with exactly one function that fits. Throws `BadEncoding`. */
  encodeCall(functionOrAbi: string | readonly unknown[], args: readonly unknown[]): Hex;
  /** Throws `BadEncoding` where constructor and arguments do not fit. */
  encodeDeploy(bytecode: Hex, abi: readonly unknown[] | undefined, args: readonly unknown[]): Hex;
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
