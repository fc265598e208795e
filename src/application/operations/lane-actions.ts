import { FencepostError, unavailable } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LaneWrite, WriteOutcome } from "../../ports/lane-store.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { LaneAction, LaneOrder, SignerView } from "../api.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { signer as readSigner, type SignerQueryPorts } from "../queries/signers.ts";
import { parseChainId, parseSigner } from "../requests/normalise.ts";
import { parseLaneOrder } from "../requests/order.ts";
import { lostLane, type OwnerPorts, onOwner } from "./on-owner.ts";
import { realign } from "./realign.ts";

export interface LaneActionPorts extends SignerQueryPorts, OwnerPorts {
  readonly writer: { write(write: LaneWrite): Promise<WriteOutcome> };
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly reload: (lane: OwnedLane, reason: string) => void;
}

/** An order about a lane, on the node that owns it. */
export interface LaneTask {
  readonly lane: OwnedLane;
  readonly reason: string;
  readonly actor: string;
  /** With `realign`: the nonce to go down to. */
  readonly nonce: number | null;
}

/** A send that is out is waited for this long before the answer says that nothing is sent any more. */
const LAST_SENDS_MS = 5_000;

const ACTIONS: Readonly<Record<LaneAction, (ports: LaneActionPorts, task: LaneTask) => Promise<void>>> = {
  suspend: (ports, task) => setSuspended(ports, task, true),
  resume: (ports, task) => setSuspended(ports, task, false),
  realign,
};

export async function actOnLane(ports: LaneActionPorts, order: LaneOrder): Promise<readonly SignerView[]> {
  const { reason, nonce } = parseLaneOrder(order);
  const perform = ACTIONS[order.action];
  const lane = laneOfOrder(ports, order);
  await onOwner(ports, lane, (owned) => perform(ports, { lane: owned, reason, actor: order.actor, nonce }));
  return lanesOfOrder(ports, order);
}

/** Throws where the order is not well-formed. */
export function laneOfOrder(ports: LaneActionPorts, order: LaneOrder): Lane {
  const { chainId } = parseLaneOrder(order);
  const signer = parseSigner(ports.codec, order.signer, "signer");
  return { chainId: parseChainId([...ports.chains.keys()], chainId), signer };
}

export async function lanesOfOrder(ports: LaneActionPorts, order: LaneOrder): Promise<readonly SignerView[]> {
  const { chainId } = laneOfOrder(ports, order);
  return (await readSigner(ports, order.signer)).filter(({ lane }) => lane.chainId === chainId);
}

/** Suspended, creates are accepted and wait; nothing is signed or sent. It belongs to the lane and outlives its owner. */
async function setSuspended(ports: LaneActionPorts, task: LaneTask, suspended: boolean): Promise<void> {
  const { lane, reason, actor } = task;
  // Stops at once what would start meanwhile; starts nothing before it is durable.
  if (suspended) lane.suspendedBy ??= "OPERATOR";
  try {
    const decision = { action: suspended ? "suspend" : "resume", actor, reason };
    const outcome = await ports.writer.write({ kind: "suspend", fence: lane.fence, suspended, decision });
    if (outcome.status !== "done") throw lostLane();
  } catch (error) {
    // It may be suspended in the database, and for everybody who looks there; or not, and by other orders in between.
    ports.reload(lane, "the database did not say whether it was suspended or resumed");
    if (error instanceof FencepostError) throw error;
    throw unavailable("the database did not say whether this was done; look at the signer before repeating it", error);
  }
  // An order that was on its way when this one came may have changed it since: the last that is durable holds.
  lane.suspendedBy = suspended ? (lane.suspendedBy ?? "OPERATOR") : null;
  ports.telemetry.emit({ type: "lane.suspended", lane: lane.lane, suspended, reason, actor });
  if (suspended) await lastSends(ports, lane);
  lane.signing?.kick();
  lane.broadcasting?.kick();
}

async function lastSends(ports: LaneActionPorts, lane: OwnedLane): Promise<void> {
  const done = new AbortController();
  const patience = ports.clock.sleep(LAST_SENDS_MS, done.signal).catch(() => undefined);
  await Promise.race([Promise.all([lane.signing?.settled(), lane.broadcasting?.settled()]), patience]);
  done.abort();
}
