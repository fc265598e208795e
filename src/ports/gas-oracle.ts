import type { Offer } from "../domain/transaction/fees.ts";

/** Recommends gas prices, in addition to the fees that the chain itself reports. */
export interface GasOracle {
  /**
   * The recommended price. Null if there is none now; the price then comes from the chain's fees alone. Never throws.
   */
  offer(): Promise<Offer | null>;
}
