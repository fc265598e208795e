/**
 * A transaction that a policy has wait for a second API key's word: approved, rejected, or cancelled before it has a
 * nonce. Done by the lane's owner, behind the lane's lock: of two decisions the first counts, and one that comes after its
 * time is over finds it expired. Once approved it gets its nonce as everything in the intake table does
 * (detours/intake.ts).
 *
 * Reads: the transaction and its history. Writes: the decision. A crash leaves the decision, or nothing of it; a repeat of
 * the order is known by its id.
 */
import type { HistoryRecord, TransactionRecord } from "../../ports/query-store.ts";
import type { TransactionAction } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { conflict } from "../detours/change-payload.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { Instruction } from "../requests/order.ts";
import { holdIntent } from "./hold-transaction.ts";

type Decided = "approve" | "reject" | "callOff";

const EVENTS: Partial<Readonly<Record<TransactionAction, Decided>>> = {
  approve: "approve",
  reject: "reject",
  cancel: "callOff",
};

const DECIDED: Readonly<Record<Decided | "expire", string>> = {
  approve: "was approved",
  reject: "was rejected",
  expire: "was not approved in time",
  callOff: "was cancelled",
};

/**
 * "decided": this order, or another one to the same end, is written down, or it may be: to be looked for. Null: it does not
 * wait for approval, and the order is not about that.
 */
export async function settleApproval(
  ports: CallPorts,
  lane: OwnedLane,
  record: TransactionRecord,
  instruction: Instruction,
): Promise<"decided" | "done" | null> {
  const { action, reason, decision } = instruction;
  const { txId, requestId, awaiting, intakeId: waiting } = record;
  if (action === "suspend" || action === "resume")
    return waiting === undefined ? null : holdIntent(ports, lane, record, instruction);
  const event = EVENTS[action];
  const row = awaiting ?? (event === "callOff" ? callableOff(record) : undefined);
  if (row === undefined)
    return action === "approve" || action === "reject" ? refuseLate(ports, lane, txId, action) : null;
  if (event === undefined) throw conflict(txId, "waits for approval: it has no nonce and no payload yet");
  const { intakeId } = row;
  const told = event === "approve" ? reason : `${DECIDED[event]} by ${decision.actor}: ${reason}`;
  await lane.term.write({
    kind: "settleIntake",
    fates: [{ intakeId, requestId, fate: "decided", event, reason: told, decision }],
  });
  if (event === "approve") ports.intakeDue();
  else ports.feedGrew();
  return "decided";
}

/** Approved, or held back: it may wait long for its nonce, and can be cancelled until it has one. */
function callableOff({ approved, intakeId, heldSince }: TransactionRecord): { readonly intakeId: number } | undefined {
  return approved ?? (heldSince !== undefined && intakeId !== undefined ? { intakeId } : undefined);
}

/** Whoever comes second gets the result, where it is the one that was wanted. */
async function refuseLate(
  { store }: CallPorts,
  lane: OwnedLane,
  txId: string,
  action: "approve" | "reject",
): Promise<"done"> {
  const made = (await lane.term.during(store.history(txId))).findLast(isDecided);
  if (made?.event === action) return "done";
  if (made === undefined) throw conflict(txId, "does not wait for approval");
  const by = made.decision === undefined ? "" : ` by ${made.decision.actor}`;
  throw conflict(txId, `${DECIDED[made.event as keyof typeof DECIDED]}${by}`);
}

function isDecided({ event }: HistoryRecord) {
  return Object.hasOwn(DECIDED, event);
}
