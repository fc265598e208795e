import type { Offer } from "../domain/fees.ts";

/** Says what to offer for gas, beside the chain's own market. */
export interface GasOracle {
  /** Null: it has nothing to say now, and the market alone decides. Never throws. */
  offer(): Promise<Offer | null>;
}
