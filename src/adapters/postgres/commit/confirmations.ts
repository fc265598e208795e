import { reviseConfirmations } from "../../../domain/confirmations.ts";
import type { ConfirmationsWrite, WriteOutcome } from "../../../ports/lane-store.ts";
import type { Plan } from "./plan.ts";

/** The same prefix extends the stored list, another one replaces it from the first height that differs. */
export function planConfirmations(plan: Plan, write: ConfirmationsWrite): WriteOutcome {
  const chain = plan.chains.get(write.fence.lane.chainId);
  if (chain === undefined) throw new Error(`the blocks of chain ${write.fence.lane.chainId} were not read`);
  const change = reviseConfirmations(chain.blocks, write.blocks);
  const kept =
    change.kind === "replace" ? chain.blocks.filter(({ number }) => number < change.fromNumber) : chain.blocks;
  const blocks = change.kind === "same" ? kept : [...kept, ...change.blocks].sort((a, b) => a.number - b.number);
  if (change.kind === "replace") chain.replacedFrom = Math.min(chain.replacedFrom, change.fromNumber);
  chain.pruneBelow = Math.max(chain.pruneBelow, write.pruneBelow);
  chain.blocks = blocks.filter(({ number }) => number >= chain.pruneBelow);
  return { status: "confirmations", newFork: change.kind === "replace" };
}
