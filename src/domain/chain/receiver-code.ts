import type { Address } from "../lane.ts";
import type { Payload } from "../transaction/transaction.ts";

/**
 * Call data has an effect only on code. The chain knows whether the receiver has code, except for chosen addresses:
 * precompiled contracts (0x01 to 0x11, 0x0100, BSC's 0x64, Filecoin's 0xfe00…) answer without code, and system
 * contracts of rollups are among them.
 */
export function needsCode({ to, data }: Pick<Payload, "to" | "data">): boolean {
  return to !== null && data !== "0x" && !isChosen(to);
}

const BYTES = /[0-9a-f]{2}/g;
/** A key or a deployment has an address with this many zero bytes with a probability of 2^-128. */
const ZEROS_OF_A_CHOSEN_ONE = 16;

/** The zero address is no contract, and usually an unset variable. */
function isChosen(address: Address) {
  const zeros =
    address
      .slice(2)
      .match(BYTES)
      ?.filter((byte) => byte === "00").length ?? 0;
  return zeros >= ZEROS_OF_A_CHOSEN_ONE && zeros < 20;
}
