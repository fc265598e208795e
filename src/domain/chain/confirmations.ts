import type { BlockRef } from "./block-window.ts";

export type Confirmation = Pick<BlockRef, "number" | "hash">;

export type ConfirmationChange =
  | { readonly kind: "same" }
  | { readonly kind: "extend"; readonly blocks: readonly Confirmation[] }
  /**
   * The stored list and the chain have different hashes at one height: stored blocks from that height up belong to an
   * orphaned fork.
   */
  | { readonly kind: "replace"; readonly fromNumber: number; readonly blocks: readonly Confirmation[] };

/** Compares the stored list of blocks with the hash-linked chain. Both are ascending. */
export function reviseConfirmations(
  stored: readonly Confirmation[],
  observed: readonly Confirmation[],
): ConfirmationChange {
  const storedHash = new Map(stored.map((block) => [block.number, block.hash]));
  const fork = observed.find((block) => (storedHash.get(block.number) ?? block.hash) !== block.hash);
  if (fork !== undefined) {
    return {
      kind: "replace",
      fromNumber: fork.number,
      blocks: observed.filter((block) => block.number >= fork.number),
    };
  }
  const blocks = observed.filter((block) => !storedHash.has(block.number));
  return blocks.length === 0 ? { kind: "same" } : { kind: "extend", blocks };
}
