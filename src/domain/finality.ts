export type FinalityRule = "confirmations" | "safe" | "finalized";

export interface FinalitySettings {
  readonly finality: FinalityRule;
  readonly confirmations: number;
}

export interface FinalityView {
  /** Height of the newest canonical block of the pass, by the word of the endpoint that is followed. */
  readonly head: number;
  /** Height of the chain's own tag, where the rule asks for one and the node knows it. */
  readonly tagged: number | null;
  /** Height of `finalized`, where known: nothing at or below it is watched any longer. */
  readonly finalized: number | null;
}

/** Confirmations count blocks on top: 0 means as soon as it is mined. */
export function isFinal(blockNumber: number, settings: FinalitySettings, view: FinalityView): boolean {
  if (settings.finality === "confirmations") return view.head - blockNumber >= settings.confirmations;
  return view.tagged !== null && blockNumber <= view.tagged;
}

/** Blocks that every endpoint must have on top of what is decided; a tag says by itself how far it is. */
export function depthNeeded({ finality, confirmations }: FinalitySettings): number {
  return finality === "confirmations" ? confirmations : 0;
}

/** How deep a settled outcome stays watched: a reorg within this is reported, not overlooked. */
export function watchDepth(confirmations: number): number {
  return Math.max(2 * confirmations, 64);
}

/** The highest block whose outcomes need no more watching; −1 where there is none yet. */
export function watchedThrough(confirmations: number, view: FinalityView): number {
  return Math.max(view.head - watchDepth(confirmations), view.finalized ?? -1);
}
