/**
 * One transaction held back, and not its lane: nothing of it is signed, sent again, repriced or cancelled by its `validUntil`
 * until it is let go. What an operator orders about it meanwhile is carried out once. What has a nonce keeps it, and what
 * stands behind it waits as behind any other; what a node has already may still be mined, and is followed as ever.
 *
 * Reads: the transaction. Writes: who holds it or lets it go, and why; durable on its row. A crash leaves it held or not, as
 * the database says, and every owner keeps to that. Twice is the same as once.
 */
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { noteTime } from "../lane/keep-time.ts";
import { commitPlanned, plan } from "../lane/lane-writer.ts";
import { type OwnedLane, queued, type Tracked } from "../lane/owned-lane.ts";
import type { Instruction } from "../requests/order.ts";

interface Task {
  readonly lane: OwnedLane;
  readonly record: TransactionRecord;
  /** Null: it is not signed yet. */
  readonly tx: Tracked | null;
  readonly instruction: Instruction;
}

/** The transaction has a nonce. */
export async function holdTransaction(ports: CallPorts, task: Task): Promise<"done"> {
  const { lane, record, tx } = task;
  const isHeld = tx === null ? record.heldSince !== undefined : tx.held;
  if (isHeld === (task.instruction.action === "suspend")) return "done";
  return tx === null ? holdQueued(ports, task) : holdTracked(ports, lane, tx, task.instruction);
}

async function holdTracked(
  ports: CallPorts,
  lane: OwnedLane,
  tx: Tracked,
  { action, reason, decision }: Instruction,
): Promise<"done"> {
  const isSuspended = action === "suspend";
  // Planned, it is held in memory: from here on nothing of it begins on the wire, and a commit that fails has the lane read again.
  await commitPlanned(ports, lane, [plan(tx, isSuspended ? "hold" : "unhold", { reason, decision })]);
  if (isSuspended) return "done";
  // What was due meanwhile is due now.
  noteTime(lane, tx, ports.clock);
  lane.kick();
  return "done";
}

/** Nothing is signed before it is durable, and then the lane is read again: a page of it may be on its way here. */
async function holdQueued(ports: CallPorts, { lane, record, instruction }: Task): Promise<"done"> {
  const { action, reason, decision } = instruction;
  const event = action === "suspend" ? "hold" : "unhold";
  lane.count("amending", 1);
  try {
    const tx = queued({ ...record, nonce: record.nonce as number });
    await commitPlanned(ports, lane, [plan(tx, event, { reason, decision })]);
    lane.term.readAgain(`an operator asked to ${action} ${record.txId}`);
    return "done";
  } finally {
    lane.count("amending", -1);
    lane.signing?.kick();
  }
}

/** It has none yet, and gets none before it is let go. */
export async function holdIntent(
  ports: CallPorts,
  lane: OwnedLane,
  record: TransactionRecord,
  { action, reason, decision }: Instruction,
): Promise<"decided" | "done"> {
  const { intakeId, requestId, heldSince } = record;
  if (intakeId === undefined || (heldSince !== undefined) === (action === "suspend")) return "done";
  const event = action === "suspend" ? "hold" : "unhold";
  await lane.term.write({
    kind: "settleIntake",
    fates: [{ intakeId, requestId, fate: "decided", event, reason, decision }],
  });
  if (event === "unhold") ports.intakeDue();
  return "decided";
}
