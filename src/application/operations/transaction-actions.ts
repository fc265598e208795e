import { defined } from "../../domain/defined.ts";
import { FencepostError, invalid, outcomeUnknown } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import { laidDown, requestedSend, sentAfresh, takenInHand } from "../../domain/pace/transaction-pace.ts";
import { isPrivate } from "../../domain/transaction/attempts.ts";
import { isSettled } from "../../domain/transaction/transitions.ts";
import type { HistoryRecord, TransactionRecord } from "../../ports/query-store.ts";
import type { TransactionAction, TransactionActionRequest, TransactionView } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { notKnownYet } from "../cluster/owner-actions.ts";
import {
  changeQueued,
  changeTracked,
  conflict,
  minedAs,
  orMovedOn,
  refuseMined,
  resolveStuck,
  standsAlready,
} from "../detours/change-payload.ts";

import { LeftInDoubt } from "../lane/between-owners.ts";
import { commitPlanned, noteTime, plan } from "../lane/lane-writer.ts";
import { type OwnedLane, queued, type Tracked } from "../lane/owned-lane.ts";
import { happened } from "../lane/tracked.ts";
import { transaction } from "../queries/transactions.ts";
import { type Instruction, parseAction } from "../requests/action.ts";
import { UUID } from "../requests/fields.ts";
import { type Operation, type OwnerPorts, wasCarriedOut } from "./operation.ts";
import type { Consultation, HookRunner } from "./stuck-hook.ts";

export interface ActionPorts extends CallPorts, OwnerPorts {
  readonly hook: HookRunner;
}

/** One operator action with its transaction, on the node that may carry it out. */
interface Task extends Pick<Consultation, "lane" | "context" | "record" | "tx"> {
  readonly instruction: Instruction;
}

type Result = "done" | "movedOn";

/**
 * Maximum number of retries while the transaction is being sent or its lane is reloaded; both normally end before that.
 */
const MOST_LOOKS = 40;
const LOOK_AGAIN_MS = 50;

const ACTIONS: Readonly<
  Record<Exclude<TransactionAction, "approve" | "reject">, (ports: ActionPorts, task: Task) => Promise<Result>>
> = {
  suspend: holdTransaction,
  resume: holdTransaction,
  resubmit,
  reprice: changePayload,
  cancel: changePayload,
  replace: changePayload,
  resolve,
};

interface Asked {
  readonly txId: string;
  readonly lane: Lane;
  readonly instruction: Instruction;
}

/**
 * An action as forwarded between nodes. `decisionId` is absent if it comes from a caller, or from a node of an older
 * release.
 */
type Forwarded = TransactionActionRequest & { readonly decisionId?: unknown };

export const act: Operation<ActionPorts, Forwarded, Asked, void, TransactionView> = {
  async laneOf(ports, received) {
    if (!isKnown(received.action)) throw notKnownYet(received.action);
    const decisionId = received.decisionId === undefined ? ports.entropy.uuid() : parseDecisionId(received.decisionId);
    const { txId, lane } = await transaction(ports, received.txId);
    return { txId, lane, instruction: parseAction(ports.codec, received, decisionId) };
  },
  // `decisionId` is part of the forwarded action: the lane's next owner gets the same action, and finds by this id how
  // much of it the previous owner has done.
  isDone: (ports, { lane, instruction }) => wasCarriedOut(ports, lane, instruction.decision.actionKey),
  travels: (received, { instruction: { decisionId } }) => ({ ...received, decisionId }),
  repeatable: () => true,
  perform,
  answer: (ports, { txId }) => transaction(ports, txId),
};

function isKnown(action: string) {
  return Object.hasOwn(ACTIONS, action) || action === "approve" || action === "reject";
}

function parseDecisionId(value: unknown) {
  if (typeof value === "string" && UUID.test(value)) return value;
  throw invalid("decisionId", "must be a UUID");
}

async function perform(ports: ActionPorts, lane: OwnedLane, asked: Asked) {
  const { txId } = asked;
  let owned = lane;
  for (let looks = 1; looks <= MOST_LOOKS; looks++) {
    if ((await orMovedOn(attemptOnce(ports, owned, asked))) === "done") return;
    await ports.clock.sleep(LOOK_AGAIN_MS);
    try {
      // If the lane was reloaded meanwhile, continue with the new copy; if another node owns it, this throws and names
      // that node.
      owned = await ports.lanes.own(lane.lane);
    } catch (refusal) {
      // The refusal shows that this node will not carry out the action now. But a write that was under way when this
      // node released the lane may still commit.
      const inDoubt = (error: unknown) => (owned.mayStillCommit ? new LeftInDoubt(error, { txId }) : error);
      const isDone = await isCarriedOut(ports, asked).catch((error) => Promise.reject(inDoubt(error)));
      if (isDone) return;
      throw inDoubt(refusal);
    }
  }
  throw outcomeUnknown(
    "the transaction kept changing, so the action may or may not have been applied; read GET /tx/{id}?include=history before repeating it",
    { txId },
  );
}

/**
 * Tries the action once. A CONFLICT is ignored if a simultaneous repeat of the same action has already carried it out.
 */
async function attemptOnce(ports: ActionPorts, lane: OwnedLane, asked: Asked) {
  const { actionKey } = asked.instruction.decision;
  try {
    const result = await attempt(ports, lane, asked);
    return result === "done" && actionKey !== undefined ? await keepUnwritten(ports, lane, asked) : result;
  } catch (error) {
    if (actionKey === undefined || !(error instanceof FencepostError) || error.code !== "CONFLICT") throw error;
    if (await lane.term.during(wasCarriedOut(ports, lane.lane, actionKey))) return "done";
    throw error;
  }
}

async function attempt(ports: ActionPorts, lane: OwnedLane, asked: Asked): Promise<Result> {
  const { txId, instruction } = asked;
  const { action } = instruction;
  // Read the transaction again: it may have changed before this node owned the lane, or since the last try.
  const record = await lane.term.during(ports.store.transaction(txId));
  if (record === null) return "movedOn";
  // Check this at the first try, too: the previous owner, or this node before it reloaded the lane, may have carried
  // out the action.
  if (await lane.term.during(isCarriedOut(ports, asked))) return "done";
  const approval = await settleApproval(ports, lane, record, instruction);
  if (approval === "decided") return (await lane.term.during(isCarriedOut(ports, asked))) ? "done" : "movedOn";
  if (approval === "done" || action === "approve" || action === "reject") return "done";
  refuseSettled(record);
  // Find the transaction by its own id: the id in the request may belong to an intent that became an alias of it.
  const tx = lane.find(record.txId);
  if (tx === null && record.state === "CREATED") throw conflict(txId, "has no nonce yet; repeat this in a moment");
  if (tx === null && record.state !== "ALLOCATED") return "movedOn";
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  return ACTIONS[action](ports, { lane, context, record, tx, instruction });
}

async function isCarriedOut(ports: ActionPorts, { txId, lane, instruction }: Asked) {
  const { decisionId, decision: given } = instruction;
  if (given.actionKey !== undefined && (await wasCarriedOut(ports, lane, given.actionKey))) return true;
  const history = await ports.store.history(txId);
  return history.some(({ decision }) => decision?.audit?.decisionId === decisionId);
}

/** Stores the idempotency key of an action that required no change and so has written nothing. */
async function keepUnwritten(ports: ActionPorts, lane: OwnedLane, asked: Asked): Promise<Result> {
  const { txId, instruction } = asked;
  const { actionKey } = instruction.decision;
  if (await lane.term.during(wasCarriedOut(ports, lane.lane, actionKey))) return "done";
  const record = await lane.term.during(ports.store.transaction(txId));
  // If the transaction is settled or has no nonce, a repeat of the action finds the same state and does nothing either,
  // so the key need not be stored.
  if (record === null || record.nonce === null || isSettled(record.state)) return "done";
  const tx =
    lane.find(record.txId) ?? (record.state === "ALLOCATED" ? queued({ ...record, nonce: record.nonce }) : null);
  if (tx === null || isSettled(tx.status.state)) return "movedOn";
  const { reason, decision } = instruction;
  await commitPlanned(ports, lane, [plan(tx, "decide", { reason, decision })]);
  return "done";
}

async function changePayload(ports: ActionPorts, { lane, context, record, tx, instruction }: Task): Promise<Result> {
  const { reason, decision, fees, payload, allowNoCode } = instruction;
  const kind = instruction.action as "reprice" | "cancel" | "replace";
  const change = defined({ kind, reason, decision, fees, allowNoCode, payload });
  if (tx === null) return changeQueued({ ports, context, lane, record, change });
  refuseMined(tx);
  if (await lane.term.during(standsAlready(ports, tx, change))) return "done";
  return changeTracked({ ports, context, lane, tx, change });
}

/** Sends the stored bytes now. A STUCK transaction returns to its normal state. */
async function resubmit(ports: ActionPorts, { lane, tx, record, instruction }: Task): Promise<Result> {
  if (tx === null) throw conflict(record.txId, "is not signed yet: there is nothing to send again");
  refuseMined(tx);
  if (tx.pace.sendOrdinal === null) throw conflict(record.txId, "was signed elsewhere: there are no bytes to send");
  if (tx.pace.inHand) return "movedOn";
  const { reason, decision, disclose } = instruction;
  const event = tx.status.state === "STUCK" ? "unstick" : "decide";
  const disclosed = disclose && isPrivate(tx.attempts) ? { disclosed: true as const } : {};
  // Keeps the sender from sending until the commit: memory is ahead of the database, and nothing may be sent because of
  // a state that is not durable.
  happened(tx, takenInHand);
  try {
    await commitPlanned(ports, lane, [plan(tx, event, { reason, decision, ...disclosed })]);
  } finally {
    happened(tx, laidDown);
  }
  if (tx.receipt === null) happened(tx, sentAfresh);
  happened(tx, requestedSend);
  lane.broadcasting?.kick();
  return "done";
}

/** Applies the operator's verdict if the action has one, or calls the hook for one now. */
async function resolve(ports: ActionPorts, { lane, context, record, tx, instruction }: Task): Promise<Result> {
  const { reason, decision, verdict } = instruction;
  if (verdict === undefined) {
    const result = await ports.hook.consult({ lane, context, record, tx, trigger: "operator", by: instruction });
    return result === "movedOn" ? "movedOn" : "done";
  }
  // If an operator decides that nothing is to be done, the transaction counts as handled and is no longer STUCK.
  const isSeenTo = verdict.action === "NOOP" && verdict.afterwards === undefined;
  const settledVerdict = isSeenTo ? { ...verdict, afterwards: "track" as const } : verdict;
  const result = await resolveStuck({ ports, context, lane, record, tx, verdict: settledVerdict, reason, decision });
  if (result !== "movedOn") ports.hook.report(lane, record, { action: verdict.action, result: result, reason });
  return result === "movedOn" ? "movedOn" : "done";
}

/** Refuses an action on a final transaction; the error states its outcome. */
function refuseSettled(record: TransactionRecord) {
  const { txId, state, subState, receipt, attempts } = record;
  if (!isSettled(state)) return;
  const status = subState === null ? state : `${state}/${subState}`;
  if (receipt === null) throw conflict(txId, `is ${status}`);
  const detail = `transaction ${txId} is ${status}: it ${minedAs(receipt, attempts)}`;
  throw new FencepostError("CONFLICT", detail, { txId, txHash: receipt.txHash });
}

/**
 * Decisions about a transaction that waits for approval by a second API key: approve, reject, or cancel before it has a
 * nonce. The lane's owner carries them out under the lane's lock. So of two decisions the first counts, and a decision
 * after the expiry finds the transaction expired. Once approved, the transaction gets its nonce like every row of the
 * intake table (detours/intake.ts).
 *
 * Reads: the transaction and its history. Writes: the decision. A crash leaves the decision, or nothing of it; a repeat
 * of the action is recognised by its id.
 */

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
 * Result of an action on a transaction that may wait for approval. "decided": this decision, or another one with the
 * same effect, may be stored by now; the caller looks it up. Null: the transaction does not wait for approval, and the
 * action is neither an approval nor a rejection.
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
  const explained = event === "approve" ? reason : `${DECIDED[event]} by ${decision.actor}: ${reason}`;
  await lane.term.write({
    kind: "settleIntake",
    results: [{ intakeId, requestId, result: "decided", event, reason: explained, decision }],
  });
  if (event === "approve") ports.intakeDue();
  else ports.feedGrew();
  return "decided";
}

/**
 * The intake row of a transaction without a nonce that is approved or put on hold. It may wait long for its nonce, and
 * can be cancelled until then.
 */
function callableOff({ approved, intakeId, heldSince }: TransactionRecord): { readonly intakeId: number } | undefined {
  return approved ?? (heldSince !== undefined && intakeId !== undefined ? { intakeId } : undefined);
}

/** A decision that comes after another one succeeds if the stored one is the same; otherwise it is refused. */
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

/**
 * Puts one transaction on hold, but not its lane: it is not signed, resent, repriced or cancelled by its `validUntil`
 * until it is released. An operator's action on it meanwhile is carried out once. It keeps its nonce, and transactions
 * with higher nonces wait. Bytes that a node already has may still be mined, and their receipt is looked up as usual.
 *
 * Reads: the transaction. Writes: who put it on hold or released it, and why; durable on its row. After a crash it is
 * on hold or not, as stored in the database, and every owner obeys that. Repeating the action has no further effect.
 */

/** Puts a transaction that has a nonce on hold, or releases it. */
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
  // Once the hold is planned, memory has it: from here on no send of the transaction begins. If the commit fails, the
  // lane is reloaded.
  await commitPlanned(ports, lane, [plan(tx, isSuspended ? "hold" : "unhold", { reason, decision })]);
  if (isSuspended) return "done";
  // When the hold ends, work whose time came during the hold is done at once.
  noteTime(lane, tx, ports.clock);
  lane.kick();
  return "done";
}

/**
 * Puts an unsigned transaction on hold, or releases it. Nothing is signed before the change is durable. Then the lane
 * is reloaded, because transactions that were read from the database before the change may still be added to memory.
 */
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

/** Puts an intent on hold, or ends its hold. An intent has no nonce yet, and gets none while it is on hold. */
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
    results: [{ intakeId, requestId, result: "decided", event, reason, decision }],
  });
  if (event === "unhold") ports.intakeDue();
  return "decided";
}
