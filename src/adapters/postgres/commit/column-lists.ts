/**
 * What the statements of a commit write, column by column. A list for each column and not one JSON text: taking that
 * apart is a third of what the server does for such small rows, and a column with nothing in it costs nothing here.
 */

import type { FeeWishes } from "../../../domain/fees.ts";
import type { Receipt } from "../../../domain/transaction.ts";
import { bare } from "../columns.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import { LIVE_STATES } from "./live-counts.ts";
import type { HistoryStep, Move } from "./move.ts";
import { stepsOnRow } from "./ordinary-life.ts";
import type { Allocation, LanePlan, Plan } from "./plan.ts";

/** In the order of the statement's parameters. Wei as text: what is above 2^53 is no number. */
type Columns<Row> = readonly ((row: Row) => Value)[];
type Value = string | number | boolean | null | undefined;
type Plain<Row> = { readonly [Key in keyof Row]: Row[Key] extends Value ? Key : never }[keyof Row];

/** Columns of a row's values as they are, by name. */
function named<Row>(...keys: readonly Plain<Row>[]): Columns<Row> {
  return keys.map((key) => (row) => row[key] as Value);
}

/** A list for each column; null for one that has nothing in any row, which `unnest` fills up. */
export function columnsOf<Row>(columns: Columns<Row>, rows: readonly Row[]): readonly unknown[] {
  return columns.map((column) => {
    const values = rows.map(column);
    return values.some((value) => value !== null && value !== undefined) ? values : null;
  });
}

function json(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

/** The four columns of a price, wanted or offered. */
function pricedBy<Row>(fees: (row: Row) => FeeWishes): Columns<Row> {
  return [
    (row) => fees(row).type,
    (row) => fees(row).gasPrice?.toString(),
    (row) => fees(row).maxFeePerGas?.toString(),
    (row) => fees(row).maxPriorityFeePerGas?.toString(),
  ];
}

/** Of `insertTransactions`. */
export const ALLOCATION: Columns<Allocation> = [
  ({ intent }) => intent.txId,
  ({ lane }) => lane.row.chainId,
  ({ lane }) => lane.row.signer,
  ({ intent }) => intent.requestId,
  ({ nonce }) => nonce,
  ({ acceptedAt }) => acceptedAt,
  ({ intent }) => intent.payload.to,
  ({ intent }) => bare(intent.payload.data),
  ({ intent }) => intent.payload.value.toString(),
  ({ intent }) => intent.payload.gas?.toString(),
  ({ intent }) => intent.gas.toString(),
  ...pricedBy<Allocation>(({ intent }) => intent.payload),
  ({ intent }) => json(intent.payload.accessList),
  ({ intent }) => json(intent.metadata),
  ({ intent }) => bare(intent.fingerprint),
  ({ lane }) => lane.row.nodeId,
  ({ lane }) => lane.row.token,
];

type ChangedLane = { readonly lane: LanePlan; readonly left: LockedLaneRow };

/** Of `updateLanes`. */
export const LANE: Columns<ChangedLane> = [
  ({ lane }) => lane.row.chainId,
  ({ lane }) => lane.row.signer,
  ({ lane }) => lane.row.token,
  ({ left }) => left.nextNonce,
  ({ left }) => left.suspendedBy,
  ({ left }) => left.reconciledEpoch,
  ({ lane }) => lane.confirmed,
  ({ lane }) => lane.failed,
  ...LIVE_STATES.map(
    (state) =>
      ({ lane }: ChangedLane) =>
        lane.live?.[state] ?? 0,
  ),
];

/** Of `proveLanes`: a lane as it was left. */
export const LEFT: Columns<LockedLaneRow> = [
  ...named<LockedLaneRow>("chainId", "signer", "ownerInstance", "token"),
  ...named<LockedLaneRow>("nextNonce", "suspendedBy", "reconciledEpoch"),
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
];

function setsNonce({ after, before }: Move): boolean {
  return after.nonce !== before.nonce;
}

/** Of `writeHistory`. */
export const STEP: Columns<HistoryStep> = [
  ...named<HistoryStep>("txId", "ordinal", "chainId", "event", "fromState", "state", "subState", "nodeId", "token"),
  ...named<HistoryStep>("reason", "actor"),
  (step) => json(step.audit),
  ...named<HistoryStep>("count", "at"),
];

/** Of `repeatHistory`. */
export const REPEAT = named<HistoryStep>("txId", "ordinal", "count", "nodeId", "token", "reason");

type SignedMove = Pick<Move, "before" | "lane"> & Move["attempts"][number];

/** Of `insertAttempts`. */
export const ATTEMPT: Columns<SignedMove> = [
  ({ before }) => before.txId,
  ({ attempt }) => attempt.ordinal,
  ({ lane }) => lane.row.chainId,
  ({ attempt }) => attempt.txHash,
  ({ attempt }) => attempt.kind,
  ({ attempt }) => attempt.gas.toString(),
  ...pricedBy<SignedMove>(({ attempt }) => attempt.fees),
  ({ attempt }) => attempt.foreign || null,
  ({ attempt }) => attempt.nodeSigned || null,
  ({ attempt }) => (attempt.rawTransaction === null ? null : bare(attempt.rawTransaction)),
  ({ claimed }) => claimed || null,
];

/** Of `writeReceipts`. */
export const RECEIPT: Columns<Pick<Move, "before" | "lane"> & { readonly receipt: Receipt }> = [
  ({ before }) => before.txId,
  ({ lane }) => lane.row.chainId,
  ({ receipt }) => receipt.txHash,
  ({ receipt }) => receipt.blockNumber,
  ({ receipt }) => receipt.blockHash,
  ({ receipt }) => receipt.transactionIndex,
  ({ receipt }) => receipt.status,
  ({ receipt }) => receipt.gasUsed.toString(),
  ({ receipt }) => receipt.effectiveGasPrice?.toString(),
  ({ receipt }) => receipt.contractAddress,
];

type LaneCompletion = Plan["completions"][number];

/** Of `appendCompletions`: in the order of their numbers. */
export const COMPLETION: Columns<LaneCompletion> = [
  ({ txId }) => txId,
  ({ lane }) => lane.row.chainId,
  ({ lane }) => lane.row.signer,
  ...named<LaneCompletion>("requestId", "nonce", "state", "subState", "settled", "txHash"),
];
