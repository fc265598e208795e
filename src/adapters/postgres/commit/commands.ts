/** From a plan to statements, in the order of the locks: lanes, transactions and what hangs on them, pools, keys, the feed last. */
import { grouped } from "../../../domain/grouped.ts";
import { type Charged, type Decision, stepsOf } from "../../../domain/ledger/index.ts";
import { standing } from "../../../domain/policy/charges.ts";
import { type Policy, policyFor } from "../../../domain/policy/policy.ts";
import { UNUSED } from "../../../domain/policy/use.ts";
import { TRANSITIONS } from "../../../domain/transaction/transitions.ts";
import { type Behind, bare, OUT_OF_THE_WAY, recordset, rowsOf, type Taking } from "../rows/columns.ts";
import { discloseAttempts, identifyAttempts, insertAttempts, markAttemptsSent } from "../statements/attempt.ts";
import { deleteConfirmations, insertConfirmations } from "../statements/confirmation.ts";
import { noteGenesis } from "../statements/database.ts";
import { appendCompletions } from "../statements/feed.ts";
import { repeatHistory, writeHistory } from "../statements/history.ts";
import { deleteHoles, writeHoles } from "../statements/hole.ts";
import {
  aliasIntake,
  approveIntake,
  awaitIntake,
  deleteIntake,
  holdIntake,
  insertAwaiting,
  refuseIntake,
} from "../statements/intake.ts";
import { insertLaneDecisions, updateLanes } from "../statements/lane.ts";
import { declineIntents } from "../statements/left-intent.ts";
import { insertOrderKeys } from "../statements/order-key.ts";
import { writeQueuedChanges } from "../statements/payload.ts";
import { chargeKeys, ensureKeyUse, insertCharges, updateLaneUse } from "../statements/policy.ts";
import { deleteReceipts, writeReceipts } from "../statements/receipt.ts";
import { insertRepairs, insertReservations, settleReservations } from "../statements/reservation.ts";
import type { Command, Statement } from "../statements/statement.ts";
import {
  insertTransactions,
  unwatchTransactions,
  updateTransactions,
  vacateNonces,
} from "../statements/transaction.ts";
import { noticesOf } from "./foreign-uses.ts";
import { chainIds, signers } from "./lookup.ts";
import type { HistoryStep, Move } from "./move.ts";
import { bitOf } from "./ordinary-life.ts";
import type { Allocation, ChainPlan, LanePlan, Plan } from "./plan.ts";
import { ACCEPTED } from "./rows.ts";
import { unspent } from "./spent-requests.ts";
import {
  allocationRow,
  attemptRows,
  awaitingRow,
  changedPayloads,
  chargeRow,
  completionRow,
  foundReceipts,
  laneRow,
  laneUseRow,
  moveRow,
} from "./written-rows.ts";

/** `marker`: of a transaction that leaves in one write, which consists of allocations alone; else null. */
export function commandsOf(plan: Plan, marker: string | null): readonly Command[] {
  const moved = [...plan.moves.values()];
  const geneses = [...plan.geneses].map(([chainId, genesisHash]) => ({ chainId, genesisHash }));
  return [
    ...lanes(plan, marker),
    ...laneUse(plan),
    ...rowsById(vacateNonces, moved.filter((move) => move.before.isNew !== true && leavesNonce(move)).map(idOf)),
    ...allocations(plan, marker),
    ...intake(plan),
    ...written(updateTransactions, moved.map(moveRow), moved.length),
    ...historyOf(firstStepsOf(plan), moved),
    ...written(writeQueuedChanges, moved.flatMap(changedPayloads)),
    ...attempts(moved),
    ...receipts(moved),
    ...written(insertCharges, plan.charges.map(chargeRow)),
    ...[...plan.chains].flatMap(([chainId, chain]) => confirmations(chainId, chain)),
    ...reservations(plan),
    ...holes(plan),
    ...some(insertRepairs, plan.repairs, (rows) => [recordset(rows), signers(rows), chainIds(rows)]),
    ...some(noteGenesis, geneses, (rows) => [recordset(rows)]),
    ...rowsById(unwatchTransactions, plan.unwatched),
    ...some(insertLaneDecisions, plan.decisions.map(decisionRow), (rows) => [recordset(rows)]),
    ...some(insertOrderKeys, plan.orders.map(orderRow), (rows) => [recordset(rows)]),
    ...noticesOf(plan),
    ...plan.pools.commands(marker),
    ...unspent(plan, marker),
    ...keyUse(plan.charges),
    ...written(appendCompletions, plan.completions.map(completionRow), plan.completions.length),
  ];
}

/** The statement with its values; none where there are no rows for it. */
function some<Row>(
  statement: Statement<unknown>,
  rows: readonly Row[],
  values: (rows: readonly Row[]) => readonly unknown[],
): readonly Command[] {
  return rows.length === 0 ? [] : [{ statement, values: values(rows) }];
}

/** The statement with these rows, and the parameters behind them. */
function written<const Columns extends string, Row extends object>(
  statement: Statement<unknown> & Taking<Columns>,
  rows: readonly Row[],
  ...behind: Behind<Columns, Row>
): readonly Command[] {
  return some(statement, rows, () => rowsOf(statement, rows, ...behind));
}

/** In the order of their ids, which is that of their locks. */
function rowsById(statement: Statement<unknown>, ids: readonly string[]): readonly Command[] {
  return some(statement, ids, () => [[...ids].sort(), ids.length]);
}

function idOf({ before }: Move): string {
  return before.txId;
}

function lanes(plan: Plan, marker: string | null): readonly Command[] {
  const changed = [...plan.lanes.values()].flatMap((lane) => {
    const left = lane.left();
    const isCounted = lane.live !== null || lane.confirmed !== 0 || lane.failed !== 0;
    return left !== lane.row || isCounted ? { lane, left } : [];
  });
  return written(updateLanes, changed.map(laneRow), changed.length, marker);
}

/** A row for each key and chain: what is charged in the present hour, and what is corrected in any. */
function keyUse(charges: Plan["charges"]): readonly Command[] {
  const limited = charges.flatMap(({ lane: { row, ledger }, owner, ...counted }) => {
    const policy = ledger.guard === null ? null : policyFor(ledger.guard.policies.keys, owner);
    return policy === null || owner === null ? [] : [{ owner, chainId: row.chainId, ...counted, policy }];
  });
  const rows = [...grouped(limited, ({ owner, chainId }) => `${chainId}:${owner}`).values()].map(keyUseRow);
  const owners = rows.map(({ owner }) => owner);
  const chainIds = rows.map(({ chainId }) => chainId);
  return [
    ...some(ensureKeyUse, rows, () => [owners, chainIds]),
    ...some(chargeKeys, rows, () => [recordset(rows), owners, chainIds, rows.length]),
  ];
}

type OfKey = Pick<Charged, "charge" | "pastKeyLimits"> & {
  readonly owner: string;
  readonly chainId: number;
  readonly policy: Policy;
};

function keyUseRow(all: readonly OfKey[]) {
  const { owner, chainId, policy } = all[0] as OfKey;
  const charged = all.map(({ charge }) => charge).filter(({ settles }) => !settles);
  const { value, cost } = standing(charged);
  const { maxValue, maxCost } = policy;
  // Limits are for what is counted up to the last of those that they may forbid.
  const last = all.findLastIndex(({ charge, pastKeyLimits }) => !charge.settles && pastKeyLimits !== true);
  const past = standing(all.slice(last + 1).flatMap(({ charge }) => (charge.settles ? [] : charge)));
  const inWei = (most: bigint | null, more: bigint) => (most === null || last === -1 ? null : `${most + more}`);
  const corrections = all
    .filter(({ charge }) => charge.settles)
    .map(({ charge: { hourMs, value, cost } }) => {
      return { hour: new Date(hourMs), value: `${value}`, cost: `${cost}` };
    });
  const hourMs = charged.reduce((latest, charge) => Math.max(latest, charge.hourMs), 0);
  return {
    ...{
      owner,
      chainId,
      hour: hourMs === 0 ? null : new Date(hourMs),
      value: `${value}`,
      cost: `${cost}`,
      corrections,
    },
    ...{ mostHourValue: inWei(maxValue.perHour, past.value), mostHourCost: inWei(maxCost.perHour, past.cost) },
    ...{ mostDayValue: inWei(maxValue.perDay, past.value), mostDayCost: inWei(maxCost.perDay, past.cost) },
  };
}

/** Of signers that a policy limits. */
function laneUse({ charges }: Plan): readonly Command[] {
  const used = [...new Set(charges.map(({ lane }) => lane))].flatMap(({ row, ledger }) => {
    const use = ledger.guard?.use;
    return use === undefined || use === UNUSED ? [] : { row, use };
  });
  return written(updateLaneUse, used.map(laneUseRow), used.length);
}

function allocations({ allocations, moves }: Plan, marker: string | null): readonly Command[] {
  const placed = allocations.map((each) => {
    const move = moves.get(each.intent.txId);
    return move !== undefined && leavesNonce(move) ? { ...each, nonce: each.nonce + OUT_OF_THE_WAY } : each;
  });
  const consumed = allocations.flatMap(({ intakeId }) => intakeId ?? []);
  return [
    ...written(insertTransactions, placed.map(allocationRow), placed.length, marker),
    ...some(deleteIntake, consumed, () => [consumed, consumed.length]),
  ];
}

/** Before there is a nonce, or with it. */
function firstStepsOf({ allocations, awaiting, approvals, holds }: Plan): readonly HistoryStep[] {
  return [
    ...allocations.flatMap(firstSteps),
    ...awaiting.flatMap(({ intent: { txId }, intake, lane, acceptedAt, detail }) => {
      const before = { txId, steps: intake === null ? 1 : stepsOf(intake), lane, acceptedAt };
      return afterAccepted(before, { ...stepTo("await"), reason: detail });
    }),
    ...approvals.map(({ intake, fate: { reason, decision }, lane }) => {
      const step = createdStep(intake.txId, lane, stepsOf(intake) + 1);
      return { ...step, ...stepTo("approve"), reason, ...byWhom(decision) };
    }),
    ...holds.flatMap(({ intake, fate: { event, reason, decision }, lane, acceptedAt }) => {
      const subState = intake.approval?.approved === false ? "AWAITING_APPROVAL" : null;
      const step = { event, state: "CREATED", subState, reason, ...byWhom(decision) } as const;
      return afterAccepted({ txId: intake.txId, steps: stepsOf(intake), lane, acceptedAt }, step);
    }),
  ];
}

interface Accepted extends Pick<Allocation, "lane" | "acceptedAt"> {
  readonly txId: string;
  /** How many of its steps were taken before; the first of them is not written until there is a second. */
  readonly steps: number;
}

function afterAccepted(
  { txId, steps, lane, acceptedAt }: Accepted,
  step: Partial<HistoryStep>,
): readonly HistoryStep[] {
  const next = { ...createdStep(txId, lane, steps + 1), ...step };
  if (steps > 1) return [next];
  return [{ ...acceptedStep(txId, lane), ...(acceptedAt !== null && { at: acceptedAt }) }, next];
}

/**
 * What came through the intake table was accepted before it was allocated, and has both in its history. Otherwise the
 * first step is what the rows of the allocation say.
 */
function firstSteps({ intent: { txId }, acceptedAt, lane, stepsBefore }: Allocation): readonly HistoryStep[] {
  if (acceptedAt === null) return [];
  return afterAccepted({ txId, steps: stepsBefore, lane, acceptedAt }, stepTo("allocate"));
}

function acceptedStep(txId: string, { row: { chainId } }: LanePlan): HistoryStep {
  return { ...ACCEPTED, txId, chainId, actor: null, audit: null };
}

function createdStep(txId: string, lane: LanePlan, ordinal: number): HistoryStep {
  const { nodeId, token } = lane.row;
  return { ...acceptedStep(txId, lane), ordinal, fromState: "CREATED", nodeId, token };
}

function stepTo(event: "await" | "approve" | "allocate") {
  return { event, ...TRANSITIONS[event].to };
}

function byWhom(decision: Decision | null) {
  return { actor: decision?.actor ?? null, audit: decision?.audit ?? null };
}

function intake({ aliases, refusals, declined, awaiting, approvals, holds }: Plan): readonly Command[] {
  const refused = refusals.map(({ intake, fate, lane: { row } }) => {
    const { intakeId, event, reason } = fate;
    const { subState } = TRANSITIONS[event].to;
    const ownsRequest = event !== "refuseReusedRequestId";
    const by = { nodeId: row.nodeId, token: row.token, ...byWhom(fate.fate === "decided" ? fate.decision : null) };
    return { intakeId, event, reason, subState, ownsRequest, ...by, steps: stepsOf(intake) };
  });
  const aliased = aliases.map(({ intakeId, of }) => ({ intakeId, aliasOf: of }));
  const told = declined.map(({ intake, problem }) => ({ intakeId: intake.intakeId, problem: JSON.stringify(problem) }));
  const approved = approvals.map(({ intake: { intakeId } }) => intakeId);
  return [
    ...awaited(awaiting),
    ...held(holds),
    ...some(approveIntake, approved, (ids) => [ids, ids.length]),
    ...some(refuseIntake, refused, (rows) => [recordset(rows), rows.map(({ intakeId }) => intakeId), rows.length]),
    ...some(declineIntents, told, (rows) => [recordset(rows), rows.map(({ intakeId }) => intakeId), rows.length]),
    ...some(aliasIntake, aliased, (rows) => [recordset(rows), rows.map(({ intakeId }) => intakeId)]),
  ];
}

/** Held back and let go within one commit, the last word counts, and every one is a step. */
function held(holds: Plan["holds"]): readonly Command[] {
  const rows = [...grouped(holds, ({ intake }) => intake.intakeId)].map(([intakeId, all]) => {
    return { intakeId, holds: all.at(-1)?.fate.event === "hold", steps: all.length };
  });
  return some(holdIntake, rows, () => [recordset(rows), rows.map(({ intakeId }) => intakeId), rows.length]);
}

/** Those that have no row in the intake table yet get one. */
function awaited(awaiting: Plan["awaiting"]): readonly Command[] {
  const fresh = awaiting.filter(({ intake }) => intake === null).map(awaitingRow);
  const before = awaiting.flatMap(({ intake, approval: { rule, expiresAt } }) =>
    intake === null ? [] : { intakeId: intake.intakeId, awaits: rule, expiresAt },
  );
  return [
    ...written(insertAwaiting, fresh, fresh.length),
    ...some(awaitIntake, before, () => [recordset(before), before.map(({ intakeId }) => intakeId), before.length]),
  ];
}

/** Down, or given up: another one may take its place in this very commit. */
function leavesNonce({ before, after }: Move): boolean {
  return before.nonce !== null && (after.nonce ?? -1) < before.nonce;
}

/** A step that the row of the transaction had counted before repeats its last one; the others are new. */
function historyOf(first: readonly HistoryStep[], moved: readonly Move[]): readonly Command[] {
  const fresh = [...first];
  const repeats: HistoryStep[] = [];
  for (const { before, steps } of moved) {
    for (const step of steps) {
      if (bitOf(before, step) === 0) (step.ordinal <= before.steps ? repeats : fresh).push(step);
    }
  }
  return [...written(writeHistory, fresh), ...written(repeatHistory, repeats, repeats.length)];
}

function decisionRow({ lane, action, actor, reason }: Plan["decisions"][number]) {
  const { chainId, signer, nodeId, token } = lane.row;
  return { chainId, signer, nodeId, token, action, actor, reason };
}

function orderRow({ lane, subject, key, fingerprint }: Plan["orders"][number]) {
  const { chainId, signer } = lane.row;
  return { subject, key, signer, chainId, fingerprint: bare(fingerprint) };
}

function attempts(moved: readonly Move[]): readonly Command[] {
  const signed = moved.flatMap(attemptRows);
  const sent = moved.flatMap(({ before: { txId }, sent }) => sent.map((ordinal) => ({ txId, ordinal })));
  const disclosed = moved.filter(({ discloses }) => discloses).map(idOf);
  const named = moved.flatMap(({ before: { txId }, identified }) => identified.map((each) => ({ txId, ...each })));
  return [
    ...written(insertAttempts, signed),
    ...some(markAttemptsSent, sent, () => [recordset(sent), sent.map(({ txId }) => txId)]),
    ...some(discloseAttempts, disclosed, () => [disclosed]),
    ...some(identifyAttempts, named, () => [recordset(named), named.map(({ txId }) => txId), named.length]),
  ];
}

function receipts(moved: readonly Move[]): readonly Command[] {
  const withdrawn = moved.filter(({ receipt }) => receipt === null).map(idOf);
  const found = moved.flatMap(foundReceipts);
  return [...some(deleteReceipts, withdrawn, () => [withdrawn]), ...written(writeReceipts, found)];
}

function confirmations(chainId: number, chain: ChainPlan): readonly Command[] {
  const { stored, blocks, replacedFrom, pruneBelow } = chain;
  const kept = new Set(stored.filter(({ number }) => number < replacedFrom).map(({ number }) => number));
  const added = blocks.filter(({ number }) => !kept.has(number));
  const records = added.map(({ number, hash }) => ({ blockNumber: number, blockHash: hash }));
  return [
    { statement: deleteConfirmations, values: [chainId, replacedFrom, pruneBelow] },
    ...some(insertConfirmations, records, () => [chainId, recordset(records)]),
  ];
}

/** Of one commit: a nonce may be reserved that was released before, also one that the same commit had reserved. */
function reservations({ reserved, settled }: Plan): readonly Command[] {
  const opened = reserved.map(({ reservationId, lane, nonce, requestId, owner, expiresAt, ...own }) => {
    const { state, txId } = settled.get(reservationId)?.reservation ?? own;
    return { ...lane, reservationId, nonce, requestId, owner, expiresAt, state, txId };
  });
  const isNew = new Set(reserved.map(({ reservationId }) => reservationId));
  const over = [...settled.values()]
    .filter(({ reservation }) => !isNew.has(reservation.reservationId))
    .map(({ from, reservation: { reservationId, state, txId } }) => {
      return { reservationId, fromState: from, state, txId };
    });
  const ids = over.map(({ reservationId }) => reservationId).sort();
  return [
    ...some(settleReservations, over, () => [recordset(over), ids, over.length]),
    ...some(insertReservations, opened, () => [recordset(opened)]),
  ];
}

/** A hole that was closed and left again is another one. */
function holes(plan: Plan): readonly Command[] {
  const all = [...plan.holes.values()].map(({ lane: { row }, nonce, ...each }) => {
    return { key: { chainId: row.chainId, signer: row.signer, nonce }, ...each };
  });
  const closed = all.filter(({ wasHole }) => wasHole).map(({ key }) => key);
  const left = all.flatMap(({ key, hole }) => (hole === null ? [] : { ...key, ...hole, ...hole.expired }));
  const column = <T>(of: (key: (typeof closed)[number]) => T) => [...new Set(closed.map(of))];
  const keys = [column(({ signer }) => signer), column(({ chainId }) => chainId), column(({ nonce }) => nonce)];
  return [
    ...some(deleteHoles, closed, () => [recordset(closed), ...keys, closed.length]),
    ...some(writeHoles, left, () => [recordset(left)]),
  ];
}
