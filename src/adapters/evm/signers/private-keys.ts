import { createECDH } from "node:crypto";
import { keccak256 } from "viem/utils";
import type { Address } from "../../../domain/lane.ts";
import { toHex } from "./worker/serialise.js";

/** An unusable key. The message names its source, never the key. */
export class BadKey extends Error {
  override readonly name = "BadKey";
}

/** A private key with its address. */
export type SigningKey = ReturnType<typeof toSigningKey>;

const KEY_PATTERN = /^(0x)?([0-9a-f]{64})$/i;
const KEY_LENGTH = 32;
const ADDRESS_LENGTH = 20;

/** Parses hex keys, with or without prefix. Errors name the source and the position: the text may be a secret. */
export function parsePrivateKeys(texts: readonly string[], place = ""): readonly SigningKey[] {
  return texts.map((text, index) => {
    const source = `${place}private key ${index + 1}`;
    const hex = KEY_PATTERN.exec(text.trim())?.[2];
    if (hex === undefined) throw new BadKey(`${source} is not 32 bytes of hex`);
    const bytes = Buffer.from(hex, "hex");
    try {
      return toSigningKey(bytes, source);
    } finally {
      // Cleared, because Node's pool hands small buffers to others without clearing them.
      bytes.fill(0);
    }
  });
}

/** `source` names the key in the error for a key that is zero or not below the group order. */
export function toSigningKey(privateKey: Uint8Array, source: string) {
  const publicKey = publicKeyOf(privateKey);
  if (publicKey === null) throw new BadKey(`${source} is not a valid secp256k1 key`);
  const address = addressOf(publicKey);
  // A copy outside Node's buffer pool: a pooled buffer would take neighbouring bytes to the worker.
  return { address, privateKey: Uint8Array.from(privateKey) };
}

/** `publicKey`: 65 bytes, uncompressed; the first byte is the format. */
export function addressOf(publicKey: Uint8Array): Address {
  return toHex(keccak256(publicKey.subarray(1), "bytes").subarray(-ADDRESS_LENGTH));
}

/** Uses OpenSSL: viem first computes tables for the curve, which takes longer than all keys of a node. */
function publicKeyOf(privateKey: Uint8Array): Buffer | null {
  const curve = createECDH("secp256k1");
  // OpenSSL would accept fewer bytes.
  if (privateKey.length !== KEY_LENGTH) return null;
  try {
    curve.setPrivateKey(privateKey);
  } catch {
    return null;
  }
  return curve.getPublicKey();
}
