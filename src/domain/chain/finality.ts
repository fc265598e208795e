export type FinalityRule = "confirmations" | "safe" | "finalized";

export interface FinalitySettings {
  readonly finality: FinalityRule;
  readonly confirmations: number;
}

export interface FinalityView {
  /** Height of the newest canonical block when the finality pass began, as one endpoint reports it. */
  readonly head: number;
  /** Height of the chain's `safe` or `finalized` block, if the finality rule uses that tag and the node knows it. */
  readonly tagged: number | null;
  /** Height of the chain's `finalized` block, if known: outcomes up to it are no longer watched for reorgs. */
  readonly finalized: number | null;
}

/**
 * True if the block is final: it has the required number of confirmations (0: as soon as it is mined), or the tag has
 * reached it.
 */
export function isFinal(blockNumber: number, settings: FinalitySettings, view: FinalityView): boolean {
  if (settings.finality === "confirmations") return view.head - blockNumber >= settings.confirmations;
  return view.tagged !== null && blockNumber <= view.tagged;
}

/**
 * Number of blocks that every endpoint must have above a block before its transactions are final; 0 if finality is a
 * tag.
 */
export function depthNeeded({ finality, confirmations }: FinalitySettings): number {
  return finality === "confirmations" ? confirmations : 0;
}

/** Number of blocks for which a settled outcome is watched for reorgs. A reorg within this depth is reported. */
export function watchDepth(confirmations: number): number {
  return Math.max(2 * confirmations, 64);
}

/** Highest block whose outcomes need not be watched for reorgs any more; −1 if there is none yet. */
export function watchedThrough(confirmations: number, view: FinalityView): number {
  return Math.max(view.head - watchDepth(confirmations), view.finalized ?? -1);
}
