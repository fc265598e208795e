import type { Address } from "../lane.ts";

/** An address as it is shown: with its EIP-55 checksum, in mixed casing. */
export type Checksummed = `0x${string}`;

/** Formats an address for people; EIP-55 in production. */
export type Checksum = (address: Address) => Checksummed;

const REMEMBERED_ADDRESSES = 10_000;

/**
 * Caches checksums: each costs a keccak, and responses and logs repeat a few accounts. The cache is cleared when full.
 */
export function rememberingChecksum(checksum: Checksum): Checksum {
  const known = new Map<Address, Checksummed>();
  return (address) => {
    const remembered = known.get(address);
    if (remembered !== undefined) return remembered;
    if (known.size === REMEMBERED_ADDRESSES) known.clear();
    const text = checksum(address);
    known.set(address, text);
    return text;
  };
}
