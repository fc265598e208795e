/** Troubles that any node sees, because the database knows of them. Sentences of transactions are replaced by their explanation. */
import { laneKey } from "../lane.ts";
import type { KillInForce, SilentNode, TroubledLane, TroubledTransaction } from "./facts.ts";
import { endKill, fillHole, look, offersFor, resumeLane } from "./offers.ts";
import { behind, NOWHERE, type Trouble } from "./troubles.ts";

/** A hole is filled by the next transaction, or what is above it moves down: one that was seen for so long is not. */
const HOLE_PATIENCE_MS = 10_000;

export function ofLane(lane: TroubledLane, now: Date): readonly Trouble[] {
  return [suspension(lane), stuckHead(lane), openHole(lane, now)].filter((each) => each !== null);
}

function suspension({ lane, suspendedBy, decision, open }: TroubledLane): Trouble | null {
  if (suspendedBy === null) return null;
  const common = { ...NOWHERE, ...lane, id: `suspended:${laneKey(lane)}`, waiting: open, actions: [resumeLane(lane)] };
  const rest = open === 0 ? "" : ` ${open === 1 ? "One transaction waits" : `${open} transactions wait`}.`;
  if (suspendedBy === "HISTORY") {
    const sentence = `The database may lack commits, so nothing is sent from this signer until an operator has compared it with the chain and resumes it.${rest}`;
    return { ...common, severity: "CRITICAL", code: "LANE_AWAITS_OPERATOR", sentence };
  }
  const who = decision === null ? "" : ` (${decision.actor}: ${decision.reason})`;
  const sentence = `The lane is suspended${who}: creates are accepted and wait.${rest}`;
  return { ...common, severity: "WARNING", code: "LANE_SUSPENDED", sentence, since: decision?.at ?? null };
}

function stuckHead({ lane, head, open }: TroubledLane): Trouble | null {
  if (head?.state !== "STUCK") return null;
  const { txId, nonce, since } = head;
  const waiting = Math.max(0, open - 1);
  return {
    ...NOWHERE,
    ...lane,
    ...{ id: `tx:${txId}`, severity: "ERROR", code: "STUCK", txId, nonce, since, waiting },
    sentence: `Nonce ${nonce} was not mined in time.${behind(waiting)}`,
    actions: offersFor({ txId, lane }, ["RESUBMIT", "REPRICE", "CANCEL"]),
  };
}

function openHole({ lane, hole, head, open }: TroubledLane, now: Date): Trouble | null {
  // With nothing above it, the next transaction simply takes it.
  if (hole === null || head === null || head.nonce < hole.nonce) return null;
  if (now.getTime() - hole.since.getTime() < HOLE_PATIENCE_MS) return null;
  return {
    ...NOWHERE,
    ...lane,
    ...{ id: `hole:${laneKey(lane)}:${hole.nonce}`, severity: "ERROR", code: "HOLE_BELOW" },
    sentence: `Nothing holds nonce ${hole.nonce} (${hole.detail}), and the chain takes no later one before it.${behind(open)}`,
    ...{ since: hole.since, nonce: hole.nonce, txId: head.txId, waiting: open },
    actions: [fillHole(head.txId, hole.nonce)],
  };
}

export function ofHeld({ lane, txId, nonce, since, open }: TroubledTransaction): Trouble {
  const waiting = nonce === null ? 0 : Math.max(0, open - 1);
  return {
    ...NOWHERE,
    ...lane,
    ...{ id: `tx:${txId}`, severity: "WARNING", code: "HELD", txId, nonce, since, waiting },
    sentence: `Somebody holds it back: nothing of it is sent.${behind(waiting)}`,
    actions: offersFor({ txId, lane }, ["RESUME_TRANSACTION", "CANCEL"]),
  };
}

export function ofAwaiting({ lane, txId, since }: TroubledTransaction): Trouble {
  return {
    ...NOWHERE,
    ...lane,
    ...{ id: `tx:${txId}`, severity: "WARNING", code: "AWAITING_APPROVAL", txId, since },
    sentence: "It waits until an API key with the scope approve has approved it.",
    actions: offersFor({ txId, lane }, ["APPROVE"]),
  };
}

export function ofKill({ killId, signer, actor, reason, at }: KillInForce): Trouble {
  const what = signer === null ? "Everything is stopped" : "This signer is stopped";
  return {
    ...NOWHERE,
    ...{ id: `kill:${killId}`, severity: "CRITICAL", code: "KILLED", since: at, signer },
    sentence: `${what} on all nodes (${actor}: ${reason}): nothing is sent until somebody with admin ends the order.`,
    actions: [endKill(signer)],
  };
}

export function ofNode({ nodeId, instanceId, lanes, heartbeatAt, dead }: SilentNode): Trouble {
  const held = lanes === 1 ? "one lane" : `${lanes} lanes`;
  const what = dead
    ? `is gone, and no living node takes its ${held}: start one that holds the keys and reaches the chain.`
    : `has not renewed its heartbeat, and no other node has taken its ${held} yet.`;
  return {
    ...NOWHERE,
    ...{ id: `node:${instanceId}`, severity: "ERROR", code: "NODE_LOST", since: heartbeatAt, nodeId },
    sentence: `Node ${nodeId} ${what}`,
    actions: [look("Look at the nodes", "/nodes")],
  };
}
