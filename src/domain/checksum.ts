import type { Address } from "./lane.ts";

/** How an address is written for people; EIP-55 in production. */
export type Checksum = (address: Address) => string;

const REMEMBERED_ADDRESSES = 10_000;

/** A checksum costs a keccak, and answers and log lines name the same few accounts again and again. Forgets everything when full. */
export function rememberingChecksum(checksum: Checksum): Checksum {
  const known = new Map<Address, string>();
  return (address) => {
    const remembered = known.get(address);
    if (remembered !== undefined) return remembered;
    if (known.size === REMEMBERED_ADDRESSES) known.clear();
    const text = checksum(address);
    known.set(address, text);
    return text;
  };
}
