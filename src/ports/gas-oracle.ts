import type { Offer } from "../domain/transaction/fees.ts";

/** Advises on gas prices, beside the chain's own market. */
export interface GasOracle {
  /** Null if it has no advice now; then the market decides alone. Never throws. */
  offer(): Promise<Offer | null>;
}
