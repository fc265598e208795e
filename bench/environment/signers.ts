import { createHash } from "node:crypto";
import { privateKeyToAddress } from "viem/accounts";
import type { Address, Hex } from "../../src/domain/lane.ts";

export interface BenchSigner {
  readonly privateKey: Hex;
  readonly address: Address;
}

/** The same keys in every run. */
export function makeSigners(count: number): readonly BenchSigner[] {
  return Array.from({ length: count }, (_, index) => {
    const privateKey: Hex = `0x${createHash("sha256").update(`fencepost bench ${index}`).digest("hex")}`;
    return { privateKey, address: privateKeyToAddress(privateKey).toLowerCase() as Address };
  });
}
