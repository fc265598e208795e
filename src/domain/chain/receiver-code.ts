import type { Address } from "../lane.ts";
import type { Payload } from "../transaction/transaction.ts";

/**
 * True if the receiver must have code for the call to have an effect. Exempt are addresses that were chosen, not
 * derived from a key, where the chain may execute without code: precompiled contracts (0x01 to 0x11, 0x0100, BSC's
 * 0x64, Filecoin's 0xfe00…) and system contracts of rollups.
 */
export function needsCode({ to, data }: Pick<Payload, "to" | "data">): boolean {
  return to !== null && data !== "0x" && !isChosen(to);
}

const BYTES = /[0-9a-f]{2}/g;
/**
 * Number of zero bytes by which a chosen address is recognised. An address derived from a key or a deployment has as
 * many with a probability of 2^-128.
 */
const ZEROS_OF_A_CHOSEN_ONE = 16;

/**
 * True for an address that was chosen, not derived from a key. False for the zero address, which is no contract but
 * usually an unset variable.
 */
function isChosen(address: Address) {
  const zeros =
    address
      .slice(2)
      .match(BYTES)
      ?.filter((byte) => byte === "00").length ?? 0;
  return zeros >= ZEROS_OF_A_CHOSEN_ONE && zeros < 20;
}
