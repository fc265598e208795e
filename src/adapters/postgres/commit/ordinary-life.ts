/**
 * The usual steps of a transaction are stored as columns of its row, which each step changes anyway. Every other step
 * is stored as a separate history row. The view `fencepost.history` shows both. A step is stored as a column only if
 * its time is its only data: it has the usual ordinal, and was made by the node and in the term that allocated the
 * nonce.
 */
import type { Before, HistoryStep } from "./move.ts";

interface Place {
  readonly ordinal: number;
  readonly from: string;
  /** Bit of the column that stores the step's time. */
  readonly bit: number;
}

const PLACES: ReadonlyMap<string, Place> = new Map([
  ["sign", { ordinal: 2, from: "ALLOCATED", bit: 1 }],
  ["broadcast", { ordinal: 3, from: "TRACKING", bit: 2 }],
  ["mine", { ordinal: 4, from: "TRACKING", bit: 4 }],
  ["confirm", { ordinal: 5, from: "TRACKING", bit: 8 }],
]);

type Term = Pick<Before, "allocatedBy" | "allocatedUnder" | "steps">;

/** History steps that are stored as columns of the transaction's row, as bits for `updateTransactions`. */
export function stepsOnRow(row: Term, steps: readonly HistoryStep[]): number {
  let bits = 0;
  for (const step of steps) bits |= bitOf(row, step);
  return bits;
}

/** Bit of a step's column; 0 if the step is stored as a separate history row. */
export function bitOf(row: Term, step: HistoryStep): number {
  const place = PLACES.get(step.event);
  if (place === undefined || place.ordinal !== step.ordinal || place.from !== step.fromState) return 0;
  const isNew = step.ordinal > row.steps;
  const { allocatedBy, allocatedUnder } = row;
  const isOfSameTerm = allocatedBy !== null && allocatedBy === step.nodeId && allocatedUnder === step.token;
  const isBare = step.count === 1 && step.reason === null && step.actor === null && step.audit === null;
  return isNew && isOfSameTerm && isBare ? place.bit : 0;
}
