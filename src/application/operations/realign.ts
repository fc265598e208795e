import { countNotExceeded, countUnanimous } from "../../domain/counts.ts";
import { NO_DOUBT } from "../../domain/doubt.ts";
import { FencepostError, outcomeUnknown, unavailable } from "../../domain/errors.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import { OutcomeUnknown } from "../../ports/lane-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";

export interface RealignPorts {
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly reload: (lane: OwnedLane, reason: string) => void;
}

/** An order about a lane. */
export interface LaneTask {
  readonly reason: string;
  readonly actor: string;
  /** With `realign`: the nonce to go down to. */
  readonly nonce: number | null;
}

/** How often an endpoint that lags is asked, a poll interval apart. */
const LOOKS = 4;

/**
 * Lowers a cursor that a proven lie pushed too far: to the nonce given, or as far as it goes, which is never below what
 * the chain counts, mined or pending, and never below a nonce that may have left. The lane is read again afterwards:
 * what it believed about the chain belonged to the lie.
 */
export async function realign(ports: RealignPorts, lane: OwnedLane, task: LaneTask): Promise<void> {
  const { reason, actor } = task;
  if (lane.pace.doubt !== NO_DOUBT) {
    throw new FencepostError("CONFLICT", `the chain that answers is not the one we know: ${lane.pace.distrust}`);
  }
  const floor = Math.max(task.nonce ?? 0, await lane.term.during(chainFloor(ports, lane)));
  const decision = { action: "realign", actor, reason };
  const { cursor } = await lane.term.write({ kind: "realign", floor, decision }).catch((error) => {
    if (error instanceof TermOver) throw error;
    if (error instanceof OutcomeUnknown) ports.reload(lane, "the database did not say whether it lowered the cursor");
    throw unsaid(error);
  });
  ports.reload(lane, `an operator set the cursor to ${cursor}`);
}

/** Also where nothing can have been done: the signer shows which it was, and looking is never wrong. */
export function unsaid(cause: unknown): FencepostError {
  return outcomeUnknown("the database did not say whether this was done; look at the signer before repeating it", {
    cause,
  });
}

async function chainFloor(ports: RealignPorts, { lane }: OwnedLane): Promise<number> {
  const context = ports.chains.get(lane.chainId) as ChainContext;
  const { counts, follower } = context;
  const atBlock = follower.head?.number ?? 0;
  try {
    for (let looks = 0; looks < LOOKS; looks++) {
      if (looks > 0) await counts.nextPoll();
      const answers = await counts.everywhere(lane.signer, atBlock);
      const mined = countUnanimous(answers) ?? countNotExceeded(answers);
      if (mined !== null) return Math.max(mined, (await counts.pending(lane.signer, { atMostMs: 0 })).count);
    }
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    throw unavailable("the chain does not say how many transactions this signer has sent; nothing was changed", error);
  }
  throw unavailable("an RPC endpoint is behind the others or silent; nothing was changed, repeat this when it is back");
}
