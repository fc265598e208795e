/**
 * Whether the chain behind an endpoint is still the one a lane lives on. One sight of the contrary withholds every
 * decision, two stop the lane, and it goes on by itself when two looks in a row find nothing any more.
 */
export interface Doubt {
  /** Sights of evidence in a row; 0: none. */
  readonly seen: number;
  /** Looks without any since it stopped. */
  readonly clean: number;
  readonly stopped: boolean;
}

export const NO_DOUBT: Doubt = { seen: 0, clean: 0, stopped: false };

const SIGHTS_TO_STOP = 2;
const LOOKS_TO_GO_ON = 2;

/** A look that failed is neither: unknown never decides. */
export function weigh(doubt: Doubt, sight: "evidence" | "nothing"): Doubt {
  if (sight === "evidence") {
    const seen = doubt.seen + 1;
    return { seen, clean: 0, stopped: doubt.stopped || seen >= SIGHTS_TO_STOP };
  }
  const clean = doubt.clean + 1;
  return doubt.stopped && clean < LOOKS_TO_GO_ON ? { ...doubt, clean } : NO_DOUBT;
}
