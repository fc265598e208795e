/**
 * The canonical blocks on top of mined transactions, stored once per chain for operators to look at. Decisions never
 * read them: finality is derived from the hash-linked window each time.
 *
 * Writes: extends the stored list, or, where its prefix changed, replaces it from the fork up and counts a new fork. Kept
 * under the fence of a lane this node decides for. A crash leaves an older list that the next pass extends.
 */
import { type Confirmation, reviseConfirmations } from "../../../domain/chain/confirmations.ts";
import type { Ports } from "../../../ports/ports.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";

export async function recordConfirmations(
  { telemetry }: Pick<Ports, "telemetry">,
  context: ChainContext,
  lanes: readonly OwnedLane[],
): Promise<void> {
  const deciding = lanes.find((lane) => lane.mined.size > 0);
  const lowest = lowestMined(lanes);
  const { window } = context.follower;
  if (deciding === undefined || lowest === null || window.oldest === null) return;
  const observed = window.above(lowest).map(({ number, hash }): Confirmation => ({ number, hash }));
  const change = reviseConfirmations(context.storedConfirmations, observed);
  if (change.kind === "same") return;
  const pruneBelow = window.oldest.number;
  const outcome = await deciding.term.write({ kind: "confirmations", blocks: change.blocks, pruneBelow });
  context.storedConfirmations = observed;
  if (outcome.newFork) {
    const fromBlock = (change.blocks[0] as Confirmation).number;
    telemetry.emit({ type: "confirmations.newFork", chainId: context.chain.chainId, fromBlock });
  }
}

function lowestMined(lanes: readonly OwnedLane[]): number | null {
  let lowest: number | null = null;
  for (const lane of lanes) {
    for (const { receipt } of lane.mined.values()) {
      if (receipt !== null && (lowest === null || receipt.blockNumber < lowest)) lowest = receipt.blockNumber;
    }
  }
  return lowest;
}
