/** From a plan to statements, in the order of the locks: lanes, transactions and what hangs on them, the feed last. */
import type { LaneKey } from "../../../domain/lane.ts";
import { payloadValues } from "../columns.ts";
import { identifyAttempts, insertAttempts, markAttemptsSent } from "../statements/attempt.ts";
import { deleteConfirmations, insertConfirmations } from "../statements/confirmation.ts";
import { noteGenesis } from "../statements/database.ts";
import { appendCompletions } from "../statements/feed.ts";
import { repeatHistory, writeHistory } from "../statements/history.ts";
import { aliasIntake, deleteIntake, refuseIntake } from "../statements/intake.ts";
import { insertLaneDecisions, updateLanes } from "../statements/lane.ts";
import { writeQueuedChanges } from "../statements/payload.ts";
import { deleteReceipts, writeReceipts } from "../statements/receipt.ts";
import type { Command, Statement } from "../statements/statement.ts";
import {
  insertTransactions,
  unwatchTransactions,
  updateTransactions,
  vacateNonces,
} from "../statements/transaction.ts";
import { ALLOCATION, ATTEMPT, COMPLETION, columnsOf, MOVE, RECEIPT, REPEAT, STEP } from "./column-lists.ts";
import { subStateOf } from "./intake-fates.ts";
import { LIVE_STATES, type LiveChanges, liveChangesOf } from "./live-counts.ts";
import { standsOnRow } from "./ordinary-life.ts";
import type { Allocation, ChainPlan, HistoryStep, LanePlan, Move, Plan } from "./plan.ts";

export function commandsOf(plan: Plan): readonly Command[] {
  const moved = [...plan.moves.values()].filter((move) => move.moved);
  return [
    ...lanes(plan, liveChangesOf(plan, moved)),
    ...allocations(plan),
    ...intake(plan),
    ...transactions(moved),
    ...historyOf(plan.allocations.flatMap(firstSteps), moved),
    ...rows(writeQueuedChanges, moved.flatMap(changeRows)),
    ...attempts(moved),
    ...sentAttempts(moved),
    ...identified(moved),
    ...receipts(moved),
    ...[...plan.chains].flatMap(([chainId, chain]) => confirmations(chainId, chain)),
    ...plan.reservations.commands(),
    ...plan.holes.commands(),
    ...rows(
      noteGenesis,
      [...plan.geneses].map(([chain_id, genesis_hash]) => ({ chain_id, genesis_hash })),
    ),
    ...unwatched(plan),
    ...rows(insertLaneDecisions, plan.laneDecisions.map(laneDecisionRow)),
    ...completions(plan),
  ];
}

function lanes(plan: Plan, live: ReadonlyMap<LaneKey, LiveChanges>): readonly Command[] {
  const changed = [...plan.lanes.values()].filter((lane) => lane.changed || live.has(lane.key));
  if (changed.length === 0) return [];
  const each = <T>(column: (lane: LanePlan) => T) => changed.map(column);
  const counts = each(({ key }) => live.get(key));
  const values = [
    each(({ row }) => row.chain_id),
    each(({ row }) => row.signer),
    each(({ row }) => row.token),
    each(({ cursor }) => cursor),
    each(({ suspendedBy }) => suspendedBy),
    each(({ reconciledEpoch }) => reconciledEpoch),
    each(({ confirmed }) => confirmed),
    each(({ failed }) => failed),
    ...LIVE_STATES.map((state) => counts.map((changes) => changes?.[state] ?? 0)),
  ];
  return [command(updateLanes, [...values, changed.length])];
}

function allocations({ allocations }: Plan): readonly Command[] {
  if (allocations.length === 0) return [];
  const consumed = allocations.flatMap(({ intake }) => intake?.intake_id ?? []);
  return [
    insertion(allocations, null),
    ...(consumed.length === 0 ? [] : [command(deleteIntake, [consumed, consumed.length])]),
  ];
}

/** `marker`: of a transaction that leaves in one write. */
export function insertion(allocations: readonly Allocation[], marker: string | null): Command {
  return command(insertTransactions, [...columnsOf(ALLOCATION, allocations), allocations.length, marker]);
}

/**
 * What came through the intake table was accepted before it was allocated, and has both in its history. Otherwise the
 * first step is what the rows of the allocation say.
 */
function firstSteps({ intent, intake, lane }: Allocation): readonly HistoryStep[] {
  if (intake === null) return [];
  const nobodyDecided = { reason: null, actor: null, audit: null };
  const shared = { tx_id: intent.txId, chain_id: intake.chain_id, sub_state: null, ...nobodyDecided, count: 1 };
  const nobody = { node_id: null, token: null };
  const { node_id, token } = lane.row;
  return [
    { ...shared, ...nobody, ordinal: 1, event: "accept", from_state: null, state: "CREATED", at: intake.accepted_at },
    { ...shared, node_id, token, ordinal: 2, event: "allocate", from_state: "CREATED", state: "ALLOCATED" },
  ];
}

function intake({ aliases, refusals }: Plan): readonly Command[] {
  const ids = refusals.map(({ fate }) => fate.intakeId);
  const aliasIds = aliases.map(({ intakeId }) => intakeId);
  const refused = refusals.map(({ fate, lane }) => ({
    intake_id: fate.intakeId,
    event: fate.event,
    sub_state: subStateOf(fate.event),
    reason: fate.reason,
    owns_request: fate.event === "refuse",
    node_id: lane.row.node_id,
    token: lane.row.token,
  }));
  const aliased = aliases.map(({ intakeId, of }) => ({ intake_id: intakeId, alias_of: of }));
  return [
    ...(refused.length === 0 ? [] : [command(refuseIntake, [JSON.stringify(refused), ids, ids.length])]),
    ...(aliased.length === 0 ? [] : [command(aliasIntake, [JSON.stringify(aliased), aliasIds])]),
  ];
}

function transactions(moved: readonly Move[]): readonly Command[] {
  if (moved.length === 0) return [];
  const shifted = moved
    .filter(({ row, nonce }) => nonce !== null && nonce < (row.nonce ?? 0))
    .map(({ row }) => row.tx_id);
  return [
    ...(shifted.length === 0 ? [] : [command(vacateNonces, [shifted.sort(), shifted.length])]),
    command(updateTransactions, [...columnsOf(MOVE, moved), moved.length]),
  ];
}

/** A step that the row of the transaction had counted before repeats its last one; the others are new. */
function historyOf(first: readonly HistoryStep[], moved: readonly Move[]): readonly Command[] {
  const fresh = [...first];
  const repeats: HistoryStep[] = [];
  for (const { row, steps } of moved) {
    for (const step of steps) {
      if (!standsOnRow(row, step)) (step.ordinal <= row.history_count ? repeats : fresh).push(step);
    }
  }
  return [
    ...(fresh.length === 0 ? [] : [command(writeHistory, columnsOf(STEP, fresh))]),
    ...(repeats.length === 0 ? [] : [command(repeatHistory, [...columnsOf(REPEAT, repeats), repeats.length])]),
  ];
}

function laneDecisionRow({ lane, action, actor, reason }: Plan["laneDecisions"][number]) {
  const { chain_id, signer, node_id, token } = lane.row;
  return { chain_id, signer, node_id, token, action, actor, reason };
}

function changeRows({ row, change }: Move) {
  if (change === null) return [];
  const { kind, payload, gas } = change;
  const key = { tx_id: row.tx_id, chain_id: row.chain_id };
  return [{ ...key, kind, gas_limit: gas.toString(), ...payloadValues(payload) }];
}

function sentAttempts(moved: readonly Move[]): readonly Command[] {
  const sent = moved.flatMap(({ row, sent }) => [...sent].map((ordinal) => ({ tx_id: row.tx_id, ordinal })));
  if (sent.length === 0) return [];
  return [command(markAttemptsSent, [JSON.stringify(sent), sent.map(({ tx_id }) => tx_id)])];
}

function identified(moved: readonly Move[]): readonly Command[] {
  const records = moved.flatMap(({ row, identified }) =>
    [...identified].map(([ordinal, tx_hash]) => ({ tx_id: row.tx_id, ordinal, tx_hash })),
  );
  if (records.length === 0) return [];
  return [command(identifyAttempts, [JSON.stringify(records), records.map(({ tx_id }) => tx_id), records.length])];
}

function attempts(moved: readonly Move[]): readonly Command[] {
  const signed = moved.flatMap(({ row, attempts }) => attempts.map((each) => ({ row, ...each })));
  return signed.length === 0 ? [] : [command(insertAttempts, columnsOf(ATTEMPT, signed))];
}

function receipts(moved: readonly Move[]): readonly Command[] {
  const withdrawn = moved.filter(({ receipt }) => receipt === null).map(({ row }) => row.tx_id);
  const found = moved.flatMap(({ row, receipt }) => (receipt ? { row, receipt } : []));
  return [
    ...(withdrawn.length === 0 ? [] : [command(deleteReceipts, [withdrawn])]),
    ...(found.length === 0 ? [] : [command(writeReceipts, columnsOf(RECEIPT, found))]),
  ];
}

function confirmations(chainId: number, chain: ChainPlan): readonly Command[] {
  const { stored, blocks, replacedFrom, pruneBelow } = chain;
  const kept = new Set(stored.filter(({ number }) => number < replacedFrom).map(({ number }) => number));
  const added = blocks.filter(({ number }) => !kept.has(number));
  const records = added.map(({ number, hash }) => ({ block_number: number, block_hash: hash }));
  return [
    command(deleteConfirmations, [chainId, replacedFrom, pruneBelow]),
    ...(added.length === 0 ? [] : [command(insertConfirmations, [chainId, JSON.stringify(records)])]),
  ];
}

function unwatched(plan: Plan): readonly Command[] {
  const ids = plan
    .pastWatch()
    .map(({ tx_id }) => tx_id)
    .sort();
  return ids.length === 0 ? [] : [command(unwatchTransactions, [ids, ids.length])];
}

function completions({ completions }: Plan): readonly Command[] {
  if (completions.length === 0) return [];
  return [command(appendCompletions, [...columnsOf(COMPLETION, completions), completions.length])];
}

/** A statement whose only parameter is its rows. */
function rows(statement: Statement<unknown>, records: readonly object[]): readonly Command[] {
  return records.length === 0 ? [] : [command(statement, [JSON.stringify(records)])];
}

function command(statement: Statement<unknown>, values: readonly unknown[]): Command {
  return { statement, values };
}
