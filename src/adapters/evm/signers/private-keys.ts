import { privateKeyToAddress } from "viem/accounts";
import type { Address } from "../../../domain/lane.ts";
import { BadKey } from "./errors.ts";

/** A private key with the account it signs for. */
export interface SigningKey {
  readonly address: Address;
  readonly privateKey: Uint8Array;
}

const KEY_PATTERN = /^(0x)?([0-9a-f]{64})$/i;

/** Keys as hex, with or without prefix. Mistakes are named by position: the text itself may be a secret. */
export function parsePrivateKeys(texts: readonly string[]): readonly SigningKey[] {
  return texts.map((text, index) => {
    const hex = KEY_PATTERN.exec(text.trim())?.[2];
    if (hex === undefined) throw new BadKey(`private key ${index + 1} is not 32 bytes of hex`);
    return toSigningKey(Buffer.from(hex, "hex"), `private key ${index + 1}`);
  });
}

/** `source` names the key in the error where it is zero or not below the group order. */
export function toSigningKey(privateKey: Uint8Array, source: string): SigningKey {
  try {
    const address = privateKeyToAddress(`0x${Buffer.from(privateKey).toString("hex")}`).toLowerCase() as Address;
    // A copy of its own: a Buffer's pooled memory would hand neighbouring bytes to the worker as well.
    return { address, privateKey: Uint8Array.from(privateKey) };
  } catch {
    throw new BadKey(`${source} is not a valid secp256k1 key`);
  }
}
