import { FencepostError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import { bounded, type Clock } from "../../ports/clock.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { LaneAction, LaneOrder, SignerView } from "../api.ts";
import { notKnownYet } from "../cluster/owner-actions.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";
import { signer as readSigner, type SignerQueryPorts } from "../queries/signers.ts";
import { parseChainId, parseSigner } from "../requests/normalise.ts";
import { parseLaneOrder } from "../requests/order.ts";
import type { Operation } from "./operation.ts";
import { type LaneTask, type RealignPorts, realign, unsaid } from "./realign.ts";

export interface LaneActionPorts extends SignerQueryPorts, RealignPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

interface Asked extends LaneTask {
  readonly lane: Lane;
  readonly action: LaneAction;
}

/** A send that is out is waited for this long before the answer says that nothing is sent any more. */
const LAST_SENDS_MS = 5_000;

type Performed = (ports: LaneActionPorts, lane: OwnedLane, task: LaneTask) => Promise<void>;

const ACTIONS: Readonly<Record<LaneAction, Performed>> = {
  suspend: (ports, lane, task) => setSuspended(ports, lane, { ...task, suspended: true }),
  resume: (ports, lane, task) => setSuspended(ports, lane, { ...task, suspended: false }),
  realign,
};

export const actOnLane: Operation<LaneActionPorts, LaneOrder, Asked, void, readonly SignerView[]> = {
  laneOf(ports, order) {
    if (!Object.hasOwn(ACTIONS, order.action)) throw notKnownYet(order.action);
    const { chainId, reason, nonce } = parseLaneOrder(order);
    const signer = parseSigner(ports.codec, order.signer, "signer");
    const lane = { chainId: parseChainId([...ports.chains.keys()], chainId), signer };
    return { lane, action: order.action, reason, actor: order.actor, nonce };
  },
  // What is the only chain here may be one of several there.
  travels: (order, { lane }) => ({ ...order, request: { ...(order.request as object), chainId: lane.chainId } }),
  perform: (ports, lane, asked) => ACTIONS[asked.action](ports, lane, asked),
  answer: async (ports, { lane }) =>
    (await readSigner(ports, lane.signer)).filter(({ lane: { chainId } }) => chainId === lane.chainId),
};

/** Suspended, creates are accepted and wait; nothing is signed or sent. It belongs to the lane and outlives its owner. */
async function setSuspended(
  ports: LaneActionPorts,
  lane: OwnedLane,
  task: LaneTask & { readonly suspended: boolean },
): Promise<void> {
  const { reason, actor, suspended } = task;
  // Stops at once what would start meanwhile; starts nothing before it is durable.
  if (suspended) lane.suspending++;
  try {
    const decision = { action: suspended ? "suspend" : "resume", actor, reason };
    await lane.term.write({ kind: "suspend", suspended, decision });
  } catch (error) {
    // The outcome is unknown: the database may or may not have it suspended, and other orders may have come in between.
    ports.reload(lane, "the database did not say whether it was suspended or resumed");
    if (error instanceof TermOver) throw error;
    throw error instanceof FencepostError ? error : unsaid(error);
  } finally {
    if (suspended) lane.suspending--;
  }
  ports.telemetry.emit({ type: "lane.suspended", lane: lane.lane, suspended, reason, actor });
  if (suspended) await lastSends(ports.clock, lane);
  lane.signing?.kick();
  lane.broadcasting?.kick();
}

function lastSends(clock: Clock, { signing, broadcasting }: OwnedLane): Promise<void> {
  const sends = Promise.all([signing?.settled(), broadcasting?.settled()]);
  return bounded(clock, sends, clock.monotonicMs() + LAST_SENDS_MS);
}
