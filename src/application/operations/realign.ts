import { NO_DOUBT } from "../../domain/doubt.ts";
import { FencepostError, unavailable } from "../../domain/errors.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import { OutcomeUnknown } from "../../ports/lane-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { LaneActionPorts, LaneTask } from "./lane-actions.ts";
import { lostLane } from "./on-owner.ts";

/**
 * Lowers a cursor that a proven lie pushed too far: to the nonce given, or as far as it goes, which is never below what
 * the chain counts, mined or pending, and never below a nonce that may have left. The lane is read again afterwards:
 * what it believed about the chain belonged to the lie.
 */
export async function realign(ports: LaneActionPorts, task: LaneTask): Promise<void> {
  const { lane, reason, actor } = task;
  if (lane.doubt !== NO_DOUBT) {
    throw new FencepostError("CONFLICT", `the chain that answers is not the one we know: ${lane.distrust?.reason}`);
  }
  const floor = Math.max(task.nonce ?? 0, await chainFloor(ports, lane));
  if (lane.stopped) throw lostLane();
  const decision = { action: "realign", actor, reason };
  const outcome = await ports.writer.write({ kind: "realign", fence: lane.fence, floor, decision }).catch((error) => {
    if (error instanceof OutcomeUnknown) ports.reload(lane, "the database did not say whether it lowered the cursor");
    throw unavailable("the database did not say whether this was done; look at the signer before repeating it", error);
  });
  if (outcome.status !== "aligned") throw lostLane();
  ports.reload(lane, `an operator set the cursor to ${outcome.cursor}`);
}

async function chainFloor(ports: LaneActionPorts, { lane }: OwnedLane): Promise<number> {
  const { chain } = ports.chains.get(lane.chainId) as ChainContext;
  try {
    const counts = await Promise.all([
      chain.transactionCount(lane.signer, "latest"),
      chain.transactionCount(lane.signer, "pending"),
      chain.transactionCountElsewhere(lane.signer, 0),
    ]);
    return Math.max(...counts.map((count) => count ?? 0));
  } catch (error) {
    if (error instanceof ChainUnavailable) {
      throw unavailable(
        "the chain does not say how many transactions this signer has sent; nothing was changed",
        error,
      );
    }
    throw error;
  }
}
