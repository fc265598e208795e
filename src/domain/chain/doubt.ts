/**
 * Tracks evidence that an endpoint no longer serves the chain that a lane was used on. After one check with evidence
 * nothing is decided for the lane; after two in a row the lane stops. It resumes after two checks in a row without
 * evidence.
 */
export interface Doubt {
  /** Number of consecutive checks with evidence; 0 if there is none. */
  readonly seen: number;
  /** Number of checks without evidence since the lane stopped. */
  readonly clean: number;
  readonly stopped: boolean;
}

export const NO_DOUBT: Doubt = { seen: 0, clean: 0, stopped: false };

const SIGHTS_TO_STOP = 2;
const LOOKS_TO_GO_ON = 2;

/** Updates the evidence after a check. A failed check is not counted at all: unknown never decides (invariant I7). */
export function weigh(doubt: Doubt, sight: "evidence" | "nothing"): Doubt {
  if (sight === "evidence") {
    const seen = doubt.seen + 1;
    return { seen, clean: 0, stopped: seen >= SIGHTS_TO_STOP };
  }
  const clean = doubt.clean + 1;
  return doubt.stopped && clean < LOOKS_TO_GO_ON ? { ...doubt, clean } : NO_DOUBT;
}
