/**
 * What the statements of a commit write, column by column. A list for each column and not one JSON text: taking that
 * apart is a third of what the server does for such small rows, and a column with nothing in it costs nothing here.
 */

import type { FeeWishes } from "../../../domain/fees.ts";
import type { QueuedChange } from "../../../domain/ledger/index.ts";
import type { Use } from "../../../domain/policy/use.ts";
import type { Receipt } from "../../../domain/transaction.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import { bare, fieldsOf, INTENT, json, KEPT, PAYLOAD, type Value, valuesIn } from "../transaction-fields.ts";
import { LIVE_STATES } from "./live-counts.ts";
import type { HistoryStep, Move } from "./move.ts";
import { stepsOnRow } from "./ordinary-life.ts";
import type { Allocation, LanePlan, Plan } from "./plan.ts";

/** In the order of the statement's parameters. */
type Columns<Row> = readonly ((row: Row) => Value)[];
type Plain<Part> = { readonly [Key in keyof Part]-?: Part[Key] extends Value ? Key : never }[keyof Part];

/** Columns of a row, or of a part of it: values as they are, by name. */
function named<Row, Part>(partOf: (row: Row) => Part, ...keys: readonly Plain<Part>[]): Columns<Row> {
  return keys.map((key) => (row) => partOf(row)[key] as Value);
}

/** A list for each column; null for one that has nothing in any row, which `unnest` fills up. */
export function columnsOf<Row>(columns: Columns<Row>, rows: readonly Row[]): readonly unknown[] {
  return columns.map((column) => {
    const values = rows.map(column);
    return values.some((value) => value !== null && value !== undefined) ? values : null;
  });
}

/** The four columns of a price, wanted or offered. */
function pricedBy<Row>(fees: (row: Row) => FeeWishes): Columns<Row> {
  return named(fees, "type", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas");
}

/** Of `insertTransactions`. */
export const ALLOCATION: Columns<Allocation> = [
  ...valuesIn(fieldsOf(KEPT, ({ intent }: Allocation) => intent)),
  ({ nonce }) => nonce,
  ({ acceptedAt }) => acceptedAt,
  ({ intent }) => intent.gas,
  ...named(({ lane }: Allocation) => lane.row, "nodeId", "token"),
  ({ stepsBefore }) => stepsBefore || null,
  ({ intent }) => (intent.exactNonce === undefined ? null : true),
];

type AwaitingIntent = Plan["awaiting"][number];

/** Of `insertAwaiting`. */
export const AWAITING: Columns<AwaitingIntent> = [
  ...valuesIn(fieldsOf(INTENT, ({ intent }: AwaitingIntent) => intent)),
  ({ approval }) => approval.rule,
  ({ approval }) => approval.expiresAt.toISOString(),
];

type ChangedPayload = { readonly txId: string; readonly chainId: number; readonly change: QueuedChange };

/** Of `writeQueuedChanges`. */
export const QUEUED_CHANGE: Columns<ChangedPayload> = [
  ...named((each: ChangedPayload) => each, "txId", "chainId"),
  ...named(({ change }: ChangedPayload) => change, "kind", "gas"),
  ...valuesIn(fieldsOf(PAYLOAD, ({ change }: ChangedPayload) => change.payload)),
];

type ChangedLane = { readonly lane: LanePlan; readonly left: LockedLaneRow };

/** Of `updateLanes`. */
export const LANE: Columns<ChangedLane> = [
  ...named(({ lane }: ChangedLane) => lane.row, "chainId", "signer", "token"),
  ...named(({ left }: ChangedLane) => left, "nextNonce", "suspendedBy", "reconciledEpoch"),
  ...named(({ lane }: ChangedLane) => lane, "confirmed", "failed"),
  ...LIVE_STATES.map((state): Columns<ChangedLane>[number] => {
    return ({ lane }) => lane.live?.[state] ?? 0;
  }),
];

/** Of `proveLanes`: a lane as it was left. */
export const LEFT: Columns<LockedLaneRow> = [
  ...named((row: LockedLaneRow) => row, "chainId", "signer", "ownerInstance", "token"),
  ...named((row: LockedLaneRow) => row, "nextNonce", "suspendedBy", "reconciledEpoch"),
  ({ departedBelow }) => departedBelow !== null,
  ({ policyStamp }) => policyStamp,
];

/** Of `updateTransactions`. */
export const MOVE: Columns<Move> = [
  ({ before }) => before.txId,
  ({ before }) => before.state,
  (move) => setsNonce(move) || null,
  (move) => (setsNonce(move) ? move.after.nonce : null),
  ({ after }) => after.item.to,
  ({ after }) => after.item.subState,
  ({ after }) => after.step,
  ({ after }) => after.item.event,
  ({ after }) => after.attemptCount,
  ({ claimed, lane }) => (claimed === null ? null : lane.row.token),
  ({ claimed }) => claimed,
  ({ after }) => after.acceptedOrdinal,
  ({ claims }) => claims,
  ({ lastError }) => (lastError === undefined ? null : true),
  ({ lastError }) => lastError ?? null,
  ({ before, steps }) => stepsOnRow(before, steps),
  ({ holds }) => holds,
  ({ expires }) => expires || null,
];

function setsNonce({ after, before }: Move): boolean {
  return after.nonce !== before.nonce;
}

const itself = (step: HistoryStep): HistoryStep => step;

/** Of `writeHistory`. */
export const STEP: Columns<HistoryStep> = [
  ...named(itself, "txId", "ordinal", "chainId", "event", "fromState", "state", "subState", "nodeId", "token"),
  ...named(itself, "reason", "actor"),
  (step) => json(step.audit),
  ...named(itself, "count", "at"),
];

/** Of `repeatHistory`. */
export const REPEAT = named(itself, "txId", "ordinal", "count", "nodeId", "token", "reason");

type SignedMove = Pick<Move, "before" | "lane"> & Move["attempts"][number];

/** Of `insertAttempts`. */
export const ATTEMPT: Columns<SignedMove> = [
  ({ before }) => before.txId,
  ({ attempt }) => attempt.ordinal,
  ({ lane }) => lane.row.chainId,
  ...named(({ attempt }: SignedMove) => attempt, "txHash", "kind", "gas"),
  ...pricedBy(({ attempt }: SignedMove) => attempt.fees),
  ...named(({ attempt }: SignedMove) => attempt, "foreign", "nodeSigned", "private"),
  ({ attempt }) => (attempt.rawTransaction === null ? null : bare(attempt.rawTransaction)),
  ({ claimed }) => claimed || null,
];

type FoundReceipt = Pick<Move, "before" | "lane"> & { readonly receipt: Receipt };

/** Of `writeReceipts`. */
export const RECEIPT: Columns<FoundReceipt> = [
  ({ before }) => before.txId,
  ({ lane }) => lane.row.chainId,
  ...named(({ receipt }: FoundReceipt) => receipt, "txHash", "blockNumber", "blockHash", "transactionIndex", "status"),
  ...named(({ receipt }: FoundReceipt) => receipt, "gasUsed", "effectiveGasPrice", "contractAddress"),
  ...named(({ receipt }: FoundReceipt) => receipt, "besideGas", "besideGasUnsure"),
];

type UsedLane = { readonly row: LockedLaneRow; readonly use: Use };

/** Of `updateLaneUse`. */
export const LANE_USE: Columns<UsedLane> = [
  ...named(({ row }: UsedLane) => row, "chainId", "signer"),
  ({ use }) => timestamp(use.hourMs),
  ...named(({ use }: UsedLane) => use.hour, "value", "cost"),
  ...named(({ use }: UsedLane) => use.day, "value", "cost"),
];

type LaneCharge = Plan["charges"][number];

/** Of `insertCharges`. */
export const CHARGE: Columns<LaneCharge> = [
  ({ txId }) => txId,
  ({ lane }) => lane.row.chainId,
  ...named(({ charge }: LaneCharge) => charge, "ordinal", "moves"),
  ({ charge }) => timestamp(charge.hourMs),
  ...named(({ charge }: LaneCharge) => charge, "value", "cost", "settles"),
];

function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

type LaneCompletion = Plan["completions"][number];

/** Of `appendCompletions`: in the order of their numbers. */
export const COMPLETION: Columns<LaneCompletion> = [
  ({ txId }) => txId,
  ...named(({ lane }: LaneCompletion) => lane.row, "chainId", "signer"),
  ...named((each: LaneCompletion) => each, "requestId", "nonce", "state", "subState", "settled", "txHash"),
];
