import type { Address } from "./lane.ts";
import type { Payload } from "./transaction.ts";

/**
 * Call data means something only to code. Whether the receiver has any is for the chain to say, but for addresses that
 * were chosen and not derived: precompiled contracts (0x01 to 0x11, 0x0100, BSC's 0x64, Filecoin's 0xfe00…) answer without
 * code, and system contracts of rollups stand among them.
 */
export function needsCode({ to, data }: Pick<Payload, "to" | "data">): boolean {
  return to !== null && data !== "0x" && !isChosen(to);
}

const BYTES = /[0-9a-f]{2}/g;
/** No key and no deployment comes to an address of so many zero bytes: 1 in 2^128 does. */
const ZEROS_OF_A_CHOSEN_ONE = 16;

/** The zero address itself is no contract, and usually a variable that was never set. */
function isChosen(address: Address): boolean {
  const zeros =
    address
      .slice(2)
      .match(BYTES)
      ?.filter((byte) => byte === "00").length ?? 0;
  return zeros >= ZEROS_OF_A_CHOSEN_ONE && zeros < 20;
}
