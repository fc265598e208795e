/**
 * What the statements of a commit write, column by column. A list for each column and not one JSON text: taking that
 * apart is a third of what the server does for such small rows, and a column with nothing in it costs nothing here.
 */

import type { FeeWishes } from "../../../domain/fees.ts";
import type { Receipt } from "../../../domain/transaction.ts";
import { bare } from "../columns.ts";
import type { HistoryStep, Move } from "./move.ts";
import { stepsOnRow } from "./ordinary-life.ts";
import type { Allocation, Plan } from "./plan.ts";

/** In the order of the statement's parameters. Wei as text: what is above 2^53 is no number. */
type Columns<Row> = readonly ((row: Row) => string | number | boolean | null | undefined)[];

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
  ({ lane }) => lane.row.chain_id,
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
  ({ lane }) => lane.row.node_id,
  ({ lane }) => lane.row.token,
];

/** Of `updateTransactions`. */
export const MOVE: Columns<Move> = [
  ({ before }) => before.tx_id,
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
  (step) => step.tx_id,
  (step) => step.ordinal,
  (step) => step.chain_id,
  (step) => step.event,
  (step) => step.from_state,
  (step) => step.state,
  (step) => step.sub_state,
  (step) => step.node_id,
  (step) => step.token,
  (step) => step.reason,
  (step) => step.actor,
  (step) => json(step.audit),
  (step) => step.count,
  (step) => step.at ?? null,
];

/** Of `repeatHistory`. */
export const REPEAT: Columns<HistoryStep> = [
  (step) => step.tx_id,
  (step) => step.ordinal,
  (step) => step.count,
  (step) => step.node_id,
  (step) => step.token,
  (step) => step.reason,
];

type SignedMove = Pick<Move, "before" | "lane"> & Move["attempts"][number];

/** Of `insertAttempts`. */
export const ATTEMPT: Columns<SignedMove> = [
  ({ before }) => before.tx_id,
  ({ attempt }) => attempt.ordinal,
  ({ lane }) => lane.row.chain_id,
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
  ({ before }) => before.tx_id,
  ({ lane }) => lane.row.chain_id,
  ({ receipt }) => receipt.txHash,
  ({ receipt }) => receipt.blockNumber,
  ({ receipt }) => receipt.blockHash,
  ({ receipt }) => receipt.transactionIndex,
  ({ receipt }) => receipt.status,
  ({ receipt }) => receipt.gasUsed.toString(),
  ({ receipt }) => receipt.effectiveGasPrice?.toString(),
  ({ receipt }) => receipt.contractAddress,
];

/** Of `appendCompletions`: in the order of their numbers. */
export const COMPLETION: Columns<Plan["completions"][number]> = [
  ({ txId }) => txId,
  ({ lane }) => lane.row.chain_id,
  ({ lane }) => lane.row.signer,
  ({ requestId }) => requestId,
  ({ nonce }) => nonce,
  ({ state }) => state,
  ({ subState }) => subState,
  ({ settled }) => settled,
  ({ txHash }) => txHash,
];
