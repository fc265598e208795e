/** From a plan to statements, in the order of the locks: lanes, transactions and what hangs on them, the feed last. */
import { TRANSITIONS } from "../../../domain/transitions.ts";
import { OUT_OF_THE_WAY, payloadValues } from "../columns.ts";
import { identifyAttempts, insertAttempts, markAttemptsSent } from "../statements/attempt.ts";
import { deleteConfirmations, insertConfirmations } from "../statements/confirmation.ts";
import { noteGenesis } from "../statements/database.ts";
import { appendCompletions } from "../statements/feed.ts";
import { repeatHistory, writeHistory } from "../statements/history.ts";
import { deleteHoles, writeHoles } from "../statements/hole.ts";
import { aliasIntake, deleteIntake, refuseIntake } from "../statements/intake.ts";
import { insertLaneDecisions, updateLanes } from "../statements/lane.ts";
import { writeQueuedChanges } from "../statements/payload.ts";
import { deleteReceipts, writeReceipts } from "../statements/receipt.ts";
import { insertReservations, settleReservations } from "../statements/reservation.ts";
import type { Command, Statement } from "../statements/statement.ts";
import {
  insertTransactions,
  unwatchTransactions,
  updateTransactions,
  vacateNonces,
} from "../statements/transaction.ts";
import { ALLOCATION, ATTEMPT, COMPLETION, columnsOf, MOVE, RECEIPT, REPEAT, STEP } from "./column-lists.ts";
import { LIVE_STATES } from "./live-counts.ts";
import type { HistoryStep, Move } from "./move.ts";
import { standsOnRow } from "./ordinary-life.ts";
import type { Allocation, ChainPlan, LanePlan, Plan } from "./plan.ts";

/** `marker`: of a transaction that leaves in one write, which consists of allocations alone; else null. */
export function commandsOf(plan: Plan, marker: string | null): readonly Command[] {
  const moved = [...plan.moves.values()];
  return [
    ...lanes(plan, marker),
    ...vacated(moved.filter(({ before }) => before.isNew !== true)),
    ...allocations(plan, marker),
    ...intake(plan),
    ...(moved.length === 0 ? [] : [command(updateTransactions, [...columnsOf(MOVE, moved), moved.length])]),
    ...historyOf(plan.allocations.flatMap(firstSteps), moved),
    ...rows(writeQueuedChanges, moved.flatMap(changeRows)),
    ...attempts(moved),
    ...sentAttempts(moved),
    ...identified(moved),
    ...receipts(moved),
    ...[...plan.chains].flatMap(([chainId, chain]) => confirmations(chainId, chain)),
    ...reservations(plan),
    ...holes(plan),
    ...rows(
      noteGenesis,
      [...plan.geneses].map(([chain_id, genesis_hash]) => ({ chain_id, genesis_hash })),
    ),
    ...unwatched(plan),
    ...rows(insertLaneDecisions, plan.decisions.map(decisionRow)),
    ...completions(plan),
  ];
}

function lanes(plan: Plan, marker: string | null): readonly Command[] {
  const changed = [...plan.lanes.values()].flatMap((lane) => {
    const left = lane.left();
    const isCounted = lane.live !== null || lane.confirmed !== 0 || lane.failed !== 0;
    return left !== lane.row || isCounted ? { lane, left } : [];
  });
  if (changed.length === 0) return [];
  const each = <T>(column: (lane: LanePlan, left: LanePlan["row"]) => T) =>
    changed.map(({ lane, left }) => column(lane, left));
  const values = [
    each(({ row }) => row.chain_id),
    each(({ row }) => row.signer),
    each(({ row }) => row.token),
    each((_, left) => left.next_nonce),
    each((_, left) => left.suspended_by),
    each((_, left) => left.reconciled_epoch),
    each(({ confirmed }) => confirmed),
    each(({ failed }) => failed),
    ...LIVE_STATES.map((state) => each(({ live }) => live?.[state] ?? 0)),
  ];
  return [command(updateLanes, [...values, changed.length, marker])];
}

function allocations({ allocations, moves }: Plan, marker: string | null): readonly Command[] {
  if (allocations.length === 0) return [];
  const placed = allocations.map((each) => {
    const move = moves.get(each.intent.txId);
    return move !== undefined && leavesNonce(move) ? { ...each, nonce: each.nonce + OUT_OF_THE_WAY } : each;
  });
  const consumed = allocations.flatMap(({ intakeId }) => intakeId ?? []);
  return [
    command(insertTransactions, [...columnsOf(ALLOCATION, placed), placed.length, marker]),
    ...(consumed.length === 0 ? [] : [command(deleteIntake, [consumed, consumed.length])]),
  ];
}

/**
 * What came through the intake table was accepted before it was allocated, and has both in its history. Otherwise the
 * first step is what the rows of the allocation say.
 */
function firstSteps({ intent, acceptedAt, lane }: Allocation): readonly HistoryStep[] {
  if (acceptedAt === null) return [];
  const { chain_id, node_id, token } = lane.row;
  const nobodyDecided = { reason: null, actor: null, audit: null };
  const shared = { tx_id: intent.txId, chain_id, sub_state: null, ...nobodyDecided, count: 1 };
  const nobody = { node_id: null, token: null };
  return [
    { ...shared, ...nobody, ordinal: 1, event: "accept", from_state: null, state: "CREATED", at: acceptedAt },
    { ...shared, node_id, token, ordinal: 2, event: "allocate", from_state: "CREATED", state: "ALLOCATED" },
  ];
}

function intake({ aliases, refusals }: Plan): readonly Command[] {
  const ids = refusals.map(({ fate }) => fate.intakeId);
  const aliasIds = aliases.map(({ intakeId }) => intakeId);
  const refused = refusals.map(({ fate, lane }) => ({
    intake_id: fate.intakeId,
    event: fate.event,
    sub_state: TRANSITIONS[fate.event].to.subState,
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

/** Down, or given up: another one may take its place in this very commit. */
function leavesNonce({ before, after }: Move): boolean {
  return before.nonce !== null && (after.nonce ?? -1) < before.nonce;
}

function vacated(moved: readonly Move[]): readonly Command[] {
  const ids = moved
    .filter(leavesNonce)
    .map(({ before }) => before.tx_id)
    .sort();
  return ids.length === 0 ? [] : [command(vacateNonces, [ids, ids.length])];
}

/** A step that the row of the transaction had counted before repeats its last one; the others are new. */
function historyOf(first: readonly HistoryStep[], moved: readonly Move[]): readonly Command[] {
  const fresh = [...first];
  const repeats: HistoryStep[] = [];
  for (const { before, steps } of moved) {
    for (const step of steps) {
      if (!standsOnRow(before, step)) (step.ordinal <= before.history_count ? repeats : fresh).push(step);
    }
  }
  return [
    ...(fresh.length === 0 ? [] : [command(writeHistory, columnsOf(STEP, fresh))]),
    ...(repeats.length === 0 ? [] : [command(repeatHistory, [...columnsOf(REPEAT, repeats), repeats.length])]),
  ];
}

function decisionRow({ lane, action, actor, reason }: Plan["decisions"][number]) {
  const { chain_id, signer, node_id, token } = lane.row;
  return { chain_id, signer, node_id, token, action, actor, reason };
}

function changeRows({ before, lane, change }: Move) {
  if (change === undefined) return [];
  const { kind, payload, gas } = change;
  const key = { tx_id: before.tx_id, chain_id: lane.row.chain_id };
  return [{ ...key, kind, gas_limit: gas.toString(), ...payloadValues(payload) }];
}

function sentAttempts(moved: readonly Move[]): readonly Command[] {
  const sent = moved.flatMap(({ before, sent }) => sent.map((ordinal) => ({ tx_id: before.tx_id, ordinal })));
  if (sent.length === 0) return [];
  return [command(markAttemptsSent, [JSON.stringify(sent), sent.map(({ tx_id }) => tx_id)])];
}

function identified(moved: readonly Move[]): readonly Command[] {
  const records = moved.flatMap(({ before, identified }) =>
    identified.map(({ ordinal, txHash }) => ({ tx_id: before.tx_id, ordinal, tx_hash: txHash })),
  );
  if (records.length === 0) return [];
  return [command(identifyAttempts, [JSON.stringify(records), records.map(({ tx_id }) => tx_id), records.length])];
}

function attempts(moved: readonly Move[]): readonly Command[] {
  const signed = moved.flatMap(({ before, lane, attempts }) => attempts.map((each) => ({ before, lane, ...each })));
  return signed.length === 0 ? [] : [command(insertAttempts, columnsOf(ATTEMPT, signed))];
}

function receipts(moved: readonly Move[]): readonly Command[] {
  const withdrawn = moved.filter(({ receipt }) => receipt === null).map(({ before }) => before.tx_id);
  const found = moved.flatMap(({ before, lane, receipt }) => (receipt ? { before, lane, receipt } : []));
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

function reservations({ reserved, settled }: Plan): readonly Command[] {
  const opened = reserved.map(({ reservationId, lane, nonce, requestId, expiresAt }) => {
    const key = { reservation_id: reservationId, chain_id: lane.chainId, signer: lane.signer };
    return { ...key, nonce, request_id: requestId, expires_at: expiresAt };
  });
  const over = [...settled].map(([reservation_id, { from, reservation }]) => {
    return { reservation_id, from_state: from, state: reservation.state, tx_id: reservation.txId };
  });
  const ids = [...settled.keys()].sort();
  return [
    ...rows(insertReservations, opened),
    ...(ids.length === 0 ? [] : [command(settleReservations, [JSON.stringify(over), ids, ids.length])]),
  ];
}

/** A hole that was closed and left again is another one. */
function holes(plan: Plan): readonly Command[] {
  const all = [...plan.holes.values()].map(({ lane: { row }, nonce, ...each }) => {
    return { key: { chain_id: row.chain_id, signer: row.signer, nonce }, ...each };
  });
  const closed = all.filter(({ wasHole }) => wasHole).map(({ key }) => key);
  const left = all.flatMap(({ key, hole }) =>
    hole === null ? [] : { ...key, why: hole.why, detail: hole.detail, reservation_id: hole.reservationId },
  );
  const column = <T>(of: (key: (typeof closed)[number]) => T) => [...new Set(closed.map(of))];
  const keys = [column(({ signer }) => signer), column(({ chain_id }) => chain_id), column(({ nonce }) => nonce)];
  return [
    ...(closed.length === 0 ? [] : [command(deleteHoles, [JSON.stringify(closed), ...keys, closed.length])]),
    ...rows(writeHoles, left),
  ];
}

function unwatched(plan: Plan): readonly Command[] {
  const ids = [...plan.unwatched].sort();
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
