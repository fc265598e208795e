import { createECDH } from "node:crypto";
import { keccak256 } from "viem/utils";
import type { Address } from "../../../domain/lane.ts";
import { toHex } from "./worker/hex.js";

/** A key that cannot be used, in one line that says where it came from and never what it is. */
export class BadKey extends Error {
  override readonly name = "BadKey";
}

/** A private key with the account it signs for. */
export type SigningKey = ReturnType<typeof toSigningKey>;

const KEY_PATTERN = /^(0x)?([0-9a-f]{64})$/i;
const KEY_LENGTH = 32;
const ADDRESS_LENGTH = 20;

/** Keys as hex, with or without prefix. Mistakes are named by place and position: the text itself may be a secret. */
export function parsePrivateKeys(texts: readonly string[], place = ""): readonly SigningKey[] {
  return texts.map((text, index) => {
    const source = `${place}private key ${index + 1}`;
    const hex = KEY_PATTERN.exec(text.trim())?.[2];
    if (hex === undefined) throw new BadKey(`${source} is not 32 bytes of hex`);
    const bytes = Buffer.from(hex, "hex");
    try {
      return toSigningKey(bytes, source);
    } finally {
      // From Node's pool of small buffers, whose memory others get as it is.
      bytes.fill(0);
    }
  });
}

/** `source` names the key in the error where it is zero or not below the group order. */
export function toSigningKey(privateKey: Uint8Array, source: string) {
  const publicKey = publicKeyOf(privateKey);
  if (publicKey === null) throw new BadKey(`${source} is not a valid secp256k1 key`);
  const address = addressOf(publicKey);
  // A copy of its own: a Buffer's pooled memory would hand neighbouring bytes to the worker as well.
  return { address, privateKey: Uint8Array.from(privateKey) };
}

/** `publicKey`: 65 bytes; the first says that both coordinates follow. */
export function addressOf(publicKey: Uint8Array): Address {
  return toHex(keccak256(publicKey.subarray(1), "bytes").subarray(-ADDRESS_LENGTH));
}

/** By OpenSSL: viem first computes tables for the curve, which takes longer than all keys of a node. */
function publicKeyOf(privateKey: Uint8Array): Buffer | null {
  const curve = createECDH("secp256k1");
  // OpenSSL would take fewer bytes for a small number.
  if (privateKey.length !== KEY_LENGTH) return null;
  try {
    curve.setPrivateKey(privateKey);
  } catch {
    return null;
  }
  return curve.getPublicKey();
}
