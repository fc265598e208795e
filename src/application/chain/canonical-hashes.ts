import type { Hash } from "../../domain/lane.ts";
import type { ChainContext } from "./chain-context.ts";

/** Canonical hash by height: the frozen view where it reaches, one batch of questions where it does not. */
export async function canonicalHashes(
  context: ChainContext,
  numbers: readonly number[],
): Promise<ReadonlyMap<number, Hash>> {
  const { window } = context.follower;
  const hashes = new Map<number, Hash>();
  const below = new Set<number>();
  for (const number of numbers) {
    const known = window.hashAt(number);
    if (known !== null) hashes.set(number, known);
    else if (window.oldest !== null && number < window.oldest.number) below.add(number);
  }
  const asked = [...below];
  if (asked.length === 0) return hashes;
  const blocks = await context.chain.blocksByNumber(asked);
  for (const block of blocks) if (block !== null) hashes.set(block.number, block.hash);
  return hashes;
}
