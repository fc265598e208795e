/** Passes over a chain that fail for a reason of our own: said once while they do, and once when one is whole again. */
import type { ChainContext } from "./chain-context.ts";

const code = "PASS_FAILED";

export function passFailed(context: ChainContext, message: string): void {
  context.failedPasses++;
  context.standing.raise({ severity: "ERROR", code, message, chainId: context.chain.chainId });
}

/** `work` says whether every lane could be judged; one that could not may be what failed before. */
export async function endingFailures(context: ChainContext, work: () => Promise<boolean>): Promise<void> {
  const { chainId } = context.chain;
  const before = context.failedPasses;
  if ((await work()) && context.failedPasses === before)
    context.standing.resolve({ code, chainId }, `a pass over chain ${chainId} was whole`);
}
