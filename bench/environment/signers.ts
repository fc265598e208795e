import { createECDH, createHash } from "node:crypto";
import { keccak256 } from "viem/utils";
import type { Address, Hex } from "../../src/domain/lane.ts";

export interface BenchSigner {
  readonly privateKey: Hex;
  readonly address: Address;
}

/** The same keys in every run. */
export function makeSigners(count: number): readonly BenchSigner[] {
  return Array.from({ length: count }, (_, index) => {
    const privateKey: Hex = `0x${createHash("sha256").update(`fencepost bench ${index}`).digest("hex")}`;
    return { privateKey, address: addressOf(privateKey) };
  });
}

/** Through OpenSSL: a library in JavaScript takes seconds for ten thousand keys. */
function addressOf(privateKey: Hex): Address {
  const curve = createECDH("secp256k1");
  curve.setPrivateKey(privateKey.slice(2), "hex");
  return `0x${keccak256(curve.getPublicKey().subarray(1)).slice(-40)}`;
}
