/**
 * Stage 4: sends bytes that are stored and claimed, in nonce order, and notes what the node said.
 *
 * Reads: the lane's tracked transactions. Writes: the answer (TRACKING/BROADCAST, or the error in the node's words).
 * Invariants: I6 (only claimed bytes), I7 (an unknown answer decides nothing; it is asked again, with back-off). A stop that
 * comes before bytes are handed to a socket keeps them here (permission.ts): no answer is noted for those.
 * A crash after sending leaves TRACKING/PENDING: the next owner looks for a receipt, claims again, and sends again.
 */
import { isStarted, type NotStarted, type SubmitResult } from "../../../domain/chain/answers.ts";
import type { Hex } from "../../../domain/lane.ts";
import { laidDown, takenInHand } from "../../../domain/pace/transaction-pace.ts";
import { isPrivate } from "../../../domain/transaction/attempts.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { quietly } from "../../lane/term.ts";
import { happened, isHeldBack, type Tracked } from "../../lane/tracked.ts";
import { isNodeSigned, sendThroughNode } from "./node-signed.ts";
import { note, planAnswer } from "./note-answer.ts";
import { permission } from "./permission.ts";
import { claimAgain } from "./resubmit.ts";

const AT_ONCE = 100;

/** Sends what is due. Returns when nothing is, or nothing may be sent now. */
export function broadcast(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const due = dueNow(ports, lane);
  return due.length === 0 ? null : sendDue(ports, context, lane, due);
}

function dueNow(ports: LanePorts, lane: OwnedLane): readonly Tracked[] {
  return lane.unmined.size === 0 || lane.held ? [] : lane.toSend(ports.clock.monotonicMs(), AT_ONCE);
}

async function sendDue(
  ports: LanePorts,
  context: ChainContext,
  lane: OwnedLane,
  first: readonly Tracked[],
): Promise<void> {
  for (let due = first; due.length > 0; due = dueNow(ports, lane)) {
    for (const tx of due) happened(tx, takenInHand);
    try {
      const atNode = due.filter(isNodeSigned);
      const local = atNode.length === 0 ? due : due.filter((tx) => !isNodeSigned(tx));
      if (!local.every(({ pace }) => pace.claimed)) await claimAgain(ports, { lane, context }, local);
      await sendLocal(ports, context, lane, local);
      if (atNode.length > 0) await sendThroughNode(ports, context, lane, atNode);
    } finally {
      for (const tx of due) happened(tx, laidDown);
    }
  }
}

/** Private transactions go to private endpoints alone: they never share a request with the others. */
async function sendLocal(
  ports: LanePorts,
  context: ChainContext,
  lane: OwnedLane,
  due: readonly Tracked[],
): Promise<void> {
  const hidden = due.filter(({ attempts }) => isPrivate(attempts));
  const open = hidden.length === 0 ? due : due.filter(({ attempts }) => !isPrivate(attempts));
  if (open.length > 0) await sendAll(ports, context, lane, open);
  if (hidden.length > 0) await sendAll(ports, context, lane, hidden);
}

async function sendAll(
  ports: LanePorts,
  context: ChainContext,
  lane: OwnedLane,
  due: readonly Tracked[],
): Promise<void> {
  // Mined, withdrawn or held back while the claim was committed: what is left is sent, in the order it was due.
  const sendable = due.filter((tx) => tx.receipt === null && tx.pace.rawTransaction !== null && !isHeldBack(tx));
  if (sendable.length === 0) return;
  const everywhere = context.settings.broadcastToAll || sendable.some(wasTaken);
  const results = await lane.term.send((mayLeave) => {
    const sends = sendable.map((tx) => ({
      raw: tx.pace.rawTransaction as Hex,
      mayLeave: permission(lane, tx, mayLeave),
    }));
    return context.chain.submit(sends, {
      everywhere,
      privately: sendable.every(({ attempts }) => isPrivate(attempts)),
    });
  });
  await ports.failpoint("broadcast.sent");
  const planned = sendable.flatMap((tx, index) => {
    const result = results[index] as SubmitResult | NotStarted;
    // Its claim stays, unused: it is due as before, as soon as it may leave.
    if (!isStarted(result)) return [];
    const answered = { lane, tx, result };
    note(ports, context, answered);
    return planAnswer(answered);
  });
  if (planned.length > 0) void quietly(commitAnswers(ports, lane, planned));
}

/** A node said that it took these very bytes, and they are due again: it may have dropped them, and would once more. */
function wasTaken({ acceptedOrdinal, pace }: Tracked): boolean {
  return acceptedOrdinal !== null && acceptedOrdinal === pace.sendOrdinal;
}

/** The next send need not wait for this: order within the lane is the writer's, and a failure reloads the lane. */
async function commitAnswers(ports: LanePorts, lane: OwnedLane, planned: readonly Planned[]): Promise<void> {
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("broadcast.committed");
}
