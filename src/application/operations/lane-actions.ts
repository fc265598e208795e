import { countNotExceeded, countUnanimous } from "../../domain/chain/counts.ts";
import { NO_DOUBT } from "../../domain/chain/doubt.ts";
import { defined } from "../../domain/defined.ts";
import { FencepostError, outcomeUnknown, unavailable } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import type { LaneDecision } from "../../ports/lane-store.ts";
import type { LaneActionRequest } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { notKnownYet } from "../cluster/owner-actions.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";
import { signer as readSigner, type SignerPorts, type SignerView } from "../queries/signers.ts";
import { type LaneInstruction, parseLaneAction } from "../requests/action.ts";
import { parseChainId, parseSigner } from "../requests/normalise.ts";
import { type Operation, wasCarriedOut } from "./operation.ts";

/** A validated operator action on a lane. */
interface Asked extends Pick<LaneActionRequest, "action" | "actor">, Omit<LaneInstruction, "chainId"> {
  readonly lane: Lane;
}

const ACTIONS = { suspend: setSuspended, resume: setSuspended, realign } as const;

export const actOnLane: Operation<SignerPorts, LaneActionRequest, Asked, void, readonly SignerView[]> = {
  laneOf(ports, received) {
    if (!Object.hasOwn(ACTIONS, received.action)) throw notKnownYet(received.action);
    const { chainId, ...instruction } = parseLaneAction(received);
    const signer = parseSigner(ports.codec, received.signer, "signer");
    const lane = { chainId: parseChainId([...ports.chains.keys()], chainId), signer };
    return { lane, action: received.action, actor: received.actor, ...instruction };
  },
  // Add the chain id to the body before it is forwarded. The caller may omit it because this node has only one chain,
  // but the owner's node may have several.
  travels: (sent, { lane }) => ({ ...sent, request: { ...(sent.request as object), chainId: lane.chainId } }),
  isDone: (ports, { lane, actionKey }) => wasCarriedOut(ports, lane, actionKey),
  repeatable: ({ actionKey }) => actionKey !== undefined,
  async perform(ports, lane, asked) {
    await ACTIONS[asked.action](ports, lane, asked);
    // If the idempotency key was already used, the write under the lane's lock did nothing. Throws if the key was used
    // for another action.
    await wasCarriedOut(ports, lane.lane, asked.actionKey);
  },
  answer: async (ports, { lane }) =>
    (await readSigner(ports, lane.signer)).filter(({ lane: { chainId } }) => chainId === lane.chainId),
};

/**
 * Suspends or resumes a lane. While it is suspended, creates are accepted and wait; nothing is signed or sent. The
 * suspension belongs to the lane and outlives its owner.
 */
async function setSuspended(ports: CallPorts, lane: OwnedLane, asked: Asked) {
  const { action } = asked;
  const suspended = action === "suspend";
  // A suspend stops at once every send that has not begun; a resume starts nothing before it is durable.
  if (suspended) lane.count("suspending", 1);
  try {
    await lane.term.write({ kind: "suspend", suspended, decision: decisionOf(asked) });
  } catch (error) {
    // The outcome is unknown: the lane may or may not be suspended in the database. Reload it, because other actions
    // may have been committed meanwhile, too.
    lane.term.readAgain("the database did not say whether it was suspended or resumed");
    if (error instanceof TermOver) throw error;
    throw error instanceof FencepostError ? error : unsaid(error);
  } finally {
    if (suspended) lane.count("suspending", -1);
  }
  const { reason, actor } = asked;
  ports.telemetry.emit({ type: "lane.suspended", lane: lane.lane, token: lane.fence.token, suspended, reason, actor });
  lane.signing?.kick();
  lane.broadcasting?.kick();
}

function decisionOf({ action, actor, reason, actionKey }: Asked): LaneDecision {
  return defined({ action, actor, reason, actionKey });
}

/**
 * How many times the transaction counts are requested, a poll interval apart, while an endpoint lags or does not
 * answer.
 */
const LOOKS = 4;

/**
 * Lowers a lane's next nonce that a false count pushed too high: to the given nonce, or as far as possible. Never below
 * the chain's mined or pending count, and never below a nonce that may have been sent. The lane is reloaded afterwards,
 * because its knowledge of the chain came from the false count.
 */
async function realign(ports: CallPorts, lane: OwnedLane, task: Asked) {
  if (lane.pace.doubt !== NO_DOUBT) {
    throw new FencepostError("CONFLICT", `the RPC endpoints may serve another chain: ${lane.pace.distrust}`);
  }
  if (lane.cursor === null)
    throw new FencepostError("CONFLICT", "the signer has no next nonce yet that could be lowered");
  const floor = Math.max(task.nonce ?? 0, await lane.term.during(chainFloor(ports, lane)));
  const decision = decisionOf(task);
  const { cursor } = await lane.term.write({ kind: "realign", floor, decision }).catch((error) => {
    throw error instanceof TermOver ? error : unsaid(error);
  });
  const { reason, actor } = task;
  ports.telemetry.emit({ type: "lane.realigned", lane: lane.lane, token: lane.fence.token, cursor, reason, actor });
  lane.term.readAgain(`an operator set the cursor to ${cursor}`);
}

/**
 * Error for an action whose outcome is unknown. It is thrown even if the action cannot have been done: the caller can
 * always read the outcome on the signer's page.
 */
function unsaid(cause: unknown) {
  return outcomeUnknown("the database did not say whether this was done; look at the signer before repeating it", {
    cause,
  });
}

async function chainFloor(ports: CallPorts, { lane }: OwnedLane) {
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
    throw unavailable("the chain did not return this signer's transaction count; nothing was changed", error);
  }
  throw unavailable("an RPC endpoint lags or does not answer; nothing was changed: repeat this when it has caught up");
}
