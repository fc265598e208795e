/** Turns a commit's plan into statements, in lock order: lanes, transactions and their rows, pools, API keys, feed. */
import { timesOf } from "../../../domain/cluster/notices.ts";
import { grouped } from "../../../domain/grouped.ts";
import { type Charged, type Decision, stepsOf, type WaitingIntent } from "../../../domain/ledger/index.ts";
import { standing } from "../../../domain/policy/charges.ts";
import { type Policy, policyFor } from "../../../domain/policy/policy.ts";
import { UNUSED } from "../../../domain/policy/use.ts";
import { TRANSITIONS } from "../../../domain/transaction/transitions.ts";
import { OUT_OF_THE_WAY } from "../rows/columns.ts";
import { intentRow } from "../rows/transaction-fields.ts";
import { insertActionKeys } from "../statements/action-key.ts";
import { discloseAttempts, identifyAttempts, insertAttempts, markAttemptsSent } from "../statements/attempt.ts";
import { deleteConfirmations, insertConfirmations } from "../statements/confirmation.ts";
import { noteGenesis } from "../statements/database.ts";
import { appendCompletions } from "../statements/feed.ts";
import { repeatHistory, writeHistory } from "../statements/history.ts";
import { deleteHoles, writeHoles } from "../statements/hole.ts";
import * as waiting from "../statements/intake.ts";
import { insertLaneDecisions, updateLanes } from "../statements/lane.ts";
import { declineIntents } from "../statements/left-intent.ts";
import { writeNotices } from "../statements/notice.ts";
import { writeQueuedChanges } from "../statements/payload.ts";
import { chargeKeys, ensureKeyUse, insertCharges, updateLaneUse } from "../statements/policy.ts";
import { insertPoolChoices } from "../statements/pool-choice.ts";
import { deleteReceipts, writeReceipts } from "../statements/receipt.ts";
import { insertRepairs, insertReservations, settleReservations } from "../statements/reservation.ts";
import type { Command } from "../statements/statement.ts";
import {
  insertTransactions,
  unwatchTransactions,
  updateTransactions,
  vacateNonces,
} from "../statements/transaction.ts";
import type { HistoryStep, Move } from "./move.ts";
import { bitOf } from "./ordinary-life.ts";
import type { ChainPlan, Kept, LanePlan, Plan } from "./plan.ts";
import { ACCEPTED } from "./rows.ts";
import { messageCommands } from "./signature-rows.ts";
import { unspent } from "./spent-requests.ts";
import * as written from "./written-rows.ts";

/** `marker`: id of a commit that only allocates nonces and is made in one round trip; null for any other commit. */
export function commandsOf(plan: Plan, marker: string | null): readonly Command[] {
  const moved = [...plan.moves.values()];
  const allocated = plan.of("allocated");
  const charges = plan.of("charged");
  const idsOf = (moves: readonly Move[]) => moves.map(({ before }) => before.txId);
  return [
    ...some([...plan.lanes.values()].flatMap(written.laneRow), (rows) => updateLanes(rows, marker)),
    ...some(laneUse(charges), updateLaneUse),
    ...someById(idsOf(moved.filter((move) => move.before.isNew !== true && leavesNonce(move))), vacateNonces),
    ...some(allocations(plan), (rows) => insertTransactions(rows, marker)),
    ...some(
      allocated.flatMap(([{ intake }]) => intake?.intakeId ?? []),
      waiting.deleteIntake,
    ),
    ...intake(plan),
    ...some(moved.map(written.moveRow), updateTransactions),
    ...historyOf(firstSteps(plan), moved),
    ...some(moved.flatMap(written.payloadRow), writeQueuedChanges),
    ...some(moved.flatMap(written.attemptRows), insertAttempts),
    ...some(moved.flatMap(written.sentRows), markAttemptsSent),
    ...some(idsOf(moved.filter(({ discloses }) => discloses)), discloseAttempts),
    ...some(moved.flatMap(written.identifiedRows), identifyAttempts),
    ...some(idsOf(moved.filter(({ receipt }) => receipt === null)), deleteReceipts),
    ...some(moved.flatMap(written.receiptRow), writeReceipts),
    ...some(charges.map(written.chargeRow), insertCharges),
    ...[...plan.chains].flatMap(([chainId, chain]) => confirmations(chainId, chain)),
    ...reservations(plan),
    ...holes(plan),
    ...some(
      plan.of("repaired").map(([{ txId }, { row }]) => ({ ...row, txId })),
      insertRepairs,
    ),
    ...some(
      [...plan.geneses].map(([chainId, genesisHash]) => ({ chainId, genesisHash })),
      noteGenesis,
    ),
    ...someById(
      plan.of("unwatched").map(([{ txId }]) => txId),
      unwatchTransactions,
    ),
    ...some(
      plan.of("decision").map(([{ decision }, { row }]) => ({ ...row, ...decision })),
      insertLaneDecisions,
    ),
    ...some(
      plan.of("carriedOut").map(([{ actionKey }, { row }]) => ({ ...row, ...actionKey })),
      insertActionKeys,
    ),
    ...messageCommands(plan),
    ...some(notices(plan.of("usedElsewhere")), writeNotices),
    ...some(poolChoices(plan), (rows) => insertPoolChoices(rows, marker)),
    ...unspent(plan, marker),
    ...keyUse(charges),
    ...some(plan.of("completed").map(written.completionRow), appendCompletions),
  ];
}

/** Makes a command, or none if there are no rows for it. */
function some<Row>(rows: readonly Row[], command: (rows: readonly Row[]) => Command): readonly Command[] {
  return rows.length === 0 ? [] : [command(rows)];
}

/** Makes a command for sorted ids, because rows are locked in the order of their ids. */
function someById(ids: readonly string[], command: (ids: readonly string[]) => Command): readonly Command[] {
  return some([...ids].sort(), command);
}

/** Use of the policies' limits by each charged lane, if a policy limits the lane's signer. */
function laneUse(charges: Kept<"charged">) {
  return [...new Set(charges.map(([, lane]) => lane))].flatMap(({ row: { chainId, signer }, ledger: { guard } }) => {
    const use = guard?.use ?? UNUSED;
    if (use === UNUSED) return [];
    const { hour, day, hourMs } = use;
    const amounts = { hourValue: hour.value, hourCost: hour.cost, dayValue: day.value, dayCost: day.cost };
    return { chainId, signer, useHour: new Date(hourMs), ...amounts };
  });
}

/** Statements for the use of API keys, per key and chain: charges of the current hour, corrections of any hour. */
function keyUse(charges: Kept<"charged">): readonly Command[] {
  const limited = charges.flatMap(([{ owner, ...counted }, { row, ledger }]) => {
    const policy = ledger.guard === null ? null : policyFor(ledger.guard.policies.keys, owner);
    return policy === null || owner === null ? [] : [{ owner, chainId: row.chainId, ...counted, policy }];
  });
  const rows = [...grouped(limited, ({ owner, chainId }) => `${chainId}:${owner}`).values()].map(keyUseRow);
  return [...some(rows, ensureKeyUse), ...some(rows, chargeKeys)];
}

type OfKey = Pick<Charged, "charge" | "pastKeyLimits"> & {
  readonly owner: string;
  readonly chainId: number;
  readonly policy: Policy;
};

function keyUseRow(all: readonly OfKey[]) {
  const { owner, chainId, policy } = all[0] as OfKey;
  const { maxValue, maxCost } = policy;
  const [settling, charged] = [true, false].map((settles) =>
    all.flatMap(({ charge }) => (charge.settles === settles ? charge : [])),
  ) as [Charged["charge"][], Charged["charge"][]];
  // An API key's limits apply to some charges of a commit and not to others. The limits are checked against the sum up
  // to the last charge to which they apply; later charges are exempt.
  const last = all.findLastIndex(({ charge, pastKeyLimits }) => !charge.settles && pastKeyLimits !== true);
  const past = standing(all.slice(last + 1).flatMap(({ charge }) => (charge.settles ? [] : charge)));
  const most = (limit: bigint | null, more: bigint) => (limit === null || last === -1 ? null : limit + more);
  return {
    ...{ owner, chainId, ...standing(charged) },
    hour: charged.length === 0 ? null : new Date(Math.max(...charged.map(({ hourMs }) => hourMs))),
    corrections: settling.map(({ hourMs, value, cost }) => {
      return { hour: new Date(hourMs), value: `${value}`, cost: `${cost}` };
    }),
    ...{ mostHourValue: most(maxValue.perHour, past.value), mostHourCost: most(maxCost.perHour, past.cost) },
    ...{ mostDayValue: most(maxValue.perDay, past.value), mostDayCost: most(maxCost.perDay, past.cost) },
  };
}

function allocations(plan: Plan) {
  return plan.of("allocated").map(([{ intent, nonce, intake }, lane]) => {
    const move = plan.moves.get(intent.txId);
    const place = move !== undefined && leavesNonce(move) ? nonce + OUT_OF_THE_WAY : nonce;
    return written.allocationRow(intent, place, lane.row, plan.accepted(intake));
  });
}

function poolChoices(plan: Plan) {
  return [...plan.of("allocated"), ...plan.of("awaits")].flatMap(([{ intent, intake }, { row }]) => {
    const { pool, requestId, txId } = intent;
    return pool === undefined || intake !== null
      ? []
      : { requestId, pool, chainId: row.chainId, signer: row.signer, txId };
  });
}

/** History steps up to and including the allocation of the nonce. */
function firstSteps(plan: Plan): readonly HistoryStep[] {
  const steps = (txId: string, intake: WaitingIntent | null, lane: LanePlan, step: Partial<HistoryStep>) =>
    afterAccepted({ txId, lane, ...plan.accepted(intake) }, step);
  return [
    // An intent that did not come through the intake table needs no row for its first history step: the allocated
    // transaction's row contains that step.
    ...plan.of("allocated").flatMap(
      ([
        {
          intent: { txId },
          intake,
        },
        lane,
      ]) => {
        return intake === null ? [] : steps(txId, intake, lane, stepTo("allocate"));
      },
    ),
    ...plan.of("awaits").flatMap(
      ([
        {
          intent: { txId },
          intake,
          detail,
        },
        lane,
      ]) => {
        return steps(txId, intake, lane, { ...stepTo("await"), reason: detail });
      },
    ),
    ...plan.of("approved").map(
      ([
        {
          intake,
          result: { reason, decision },
        },
        lane,
      ]) => {
        const step = createdStep(intake.txId, lane, stepsOf(intake) + 1);
        return { ...step, ...stepTo("approve"), reason, ...byWhom(decision) };
      },
    ),
    ...plan.of("held").flatMap(
      ([
        {
          intake,
          result: { event, reason, decision },
        },
        lane,
      ]) => {
        const subState = intake.approval?.approved === false ? "AWAITING_APPROVAL" : null;
        return steps(intake.txId, intake, lane, { event, state: "CREATED", subState, reason, ...byWhom(decision) });
      },
    ),
  ];
}

interface Accepted extends ReturnType<Plan["accepted"]> {
  readonly txId: string;
  readonly lane: LanePlan;
}

/** History steps of an accepted intent. Its first step, the acceptance, gets a row only together with the second. */
function afterAccepted(
  { txId, stepsBefore, lane, acceptedAt }: Accepted,
  step: Partial<HistoryStep>,
): readonly HistoryStep[] {
  const steps = Math.max(1, stepsBefore);
  const next = { ...createdStep(txId, lane, steps + 1), ...step };
  if (steps > 1) return [next];
  return [{ ...acceptedStep(txId, lane), ...(acceptedAt !== null && { at: acceptedAt }) }, next];
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

function intake(plan: Plan): readonly Command[] {
  const awaiting = plan.of("awaits").map(([{ intent, intake, approval }]) => {
    return { intakeId: intake?.intakeId ?? null, intent, awaits: approval.rule, expiresAt: approval.expiresAt };
  });
  // If a commit puts an intent on hold and releases it, the last event decides; each event is a history step.
  const held = [...grouped(plan.of("held"), ([{ intake }]) => intake.intakeId)].map(([intakeId, all]) => {
    return { intakeId, holds: all.at(-1)?.[0].result.event === "hold", steps: all.length };
  });
  const refused = plan.of("refused").map(
    ([
      { intake, result },
      {
        row: { nodeId, token },
      },
    ]) => ({
      ...result,
      subState: TRANSITIONS[result.event].to.subState,
      ownsRequest: result.event !== "refuseReusedRequestId",
      ...{ nodeId, token, steps: stepsOf(intake) },
      ...byWhom(result.result === "decided" ? result.decision : null),
    }),
  );
  const declined = plan.of("declined").map(([{ intake, problem }]) => {
    return { intakeId: intake.intakeId, problem: JSON.stringify(problem) };
  });
  return [
    ...some(
      awaiting.filter(({ intakeId }) => intakeId === null).map(({ intent, ...until }) => intentRow(intent, until)),
      waiting.insertAwaiting,
    ),
    ...some(
      awaiting.filter(({ intakeId }) => intakeId !== null),
      waiting.awaitIntake,
    ),
    ...some(held, waiting.holdIntake),
    ...some(
      plan.of("approved").map(([{ intake }]) => intake.intakeId),
      waiting.approveIntake,
    ),
    ...some(refused, waiting.refuseIntake),
    ...some(declined, declineIntents),
    ...some(
      plan.of("aliased").map(([alias]) => alias),
      waiting.aliasIntake,
    ),
  ];
}

/** True if the transaction leaves its nonce for none or a lower one. Another may take the nonce in the same commit. */
function leavesNonce({ before, after }: Move) {
  return before.nonce !== null && (after.nonce ?? -1) < before.nonce;
}

/** Writes history steps. A step with a stored ordinal repeats it: its count, node, reason and time change. */
function historyOf(first: readonly HistoryStep[], moved: readonly Move[]): readonly Command[] {
  const fresh = [...first];
  const repeats: HistoryStep[] = [];
  for (const { before, steps } of moved) {
    for (const step of steps) {
      if (bitOf(before, step) === 0) (step.ordinal <= before.steps ? repeats : fresh).push(step);
    }
  }
  return [...some(fresh, writeHistory), ...some(repeats, repeatHistory)];
}

function confirmations(chainId: number, chain: ChainPlan): readonly Command[] {
  const { stored, blocks, replacedFrom, pruneBelow } = chain;
  const kept = new Set(stored.filter(({ number }) => number < replacedFrom).map(({ number }) => number));
  const added = blocks.filter(({ number }) => !kept.has(number));
  return [
    deleteConfirmations(chainId, replacedFrom, pruneBelow),
    ...some(added, (rows) => insertConfirmations(rows, chainId)),
  ];
}

/** Statements for reservations. Released ones are settled first: the same commit may reserve their nonces again. */
function reservations(plan: Plan): readonly Command[] {
  const settled = new Map(
    plan.of("reservationSettled").map(([{ reservation }]) => [reservation.reservationId, reservation]),
  );
  const opened = plan.of("reserved").map(([{ reservation }]) => {
    const { state, txId } = settled.get(reservation.reservationId) ?? reservation;
    return { ...reservation, ...reservation.lane, state, txId };
  });
  for (const { reservationId } of opened) settled.delete(reservationId);
  const before = new Map(
    plan
      .of("reservationSettled")
      .toReversed()
      .map(([{ reservation, from }]) => [reservation.reservationId, from]),
  );
  const over = [...settled.values()].map((each) => ({ ...each, fromState: before.get(each.reservationId) }));
  return [...some(over, settleReservations), ...some(opened, insertReservations)];
}

/** Statements for nonce holes. Deletes come first: a hole closed and opened again in one commit is a new hole. */
function holes(plan: Plan): readonly Command[] {
  const all = [...plan.holes.values()].map(({ lane: { row }, ...each }) => {
    return { ...each, chainId: row.chainId, signer: row.signer };
  });
  const left = all.flatMap(({ hole, ...key }) => (hole === null ? [] : { ...key, ...hole, ...hole.expired }));
  return [
    ...some(
      all.filter(({ wasHole }) => wasHole),
      deleteHoles,
    ),
    ...some(left, writeHoles),
  ];
}

/** Uses of a signer's key by another program. One row per lane, because an upsert may touch a row only once. */
function notices(uses: Kept<"usedElsewhere">) {
  return [...grouped(uses, ([, lane]) => lane)].map(
    ([
      {
        row: { chainId, signer },
      },
      all,
    ]) => {
      const evidence = all.map(([{ at, nonce, through, txHash, txId }]) => ({ at, nonce, through, txHash, txId }));
      return {
        chainId,
        signer,
        times: all.reduce((sum, [use]) => sum + timesOf(use), 0),
        evidence: evidence.reverse(),
      };
    },
  );
}
