import type { Offer } from "../domain/transaction/fees.ts";

/** Recommends gas prices, in addition to the chain's own market. */
export interface GasOracle {
  /** The recommended price. Null if there is none now; the market then decides alone. Never throws. */
  offer(): Promise<Offer | null>;
}
