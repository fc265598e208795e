import { HISTORY, LIMITS } from "../opening.ts";
import { statement } from "./statement.ts";

/**
 * First in every transaction, before any lock: limits that live in the server, and the history of the database.
 *
 * $4 is `transaction_timeout` where the server has it (17), else a name of ours that means nothing, so that one
 * statement serves all versions.
 *
 * The planner's switches hold for this transaction alone. Our statements look rows up by key for a batch of at most a
 * few hundred: index scans, and hash joins with the batch. A table that was tiny when the plan was cached, or was never
 * analysed, must not turn that into nested sequential scans. Generic plans, because a short list always looks cheaper
 * than the ten elements that a generic plan assumes, and would be planned again every time. No JIT: before 18 a switched-off plan that has no
 * alternative counts as infinitely expensive, and compiling it took 190 ms where running it takes 2.
 *
 * DateStyle, because a host application may have given its role another, which the driver cannot read.
 *
 * The epoch tells a node that looks late what the position no longer shows: after a restore it soon grows past what was
 * seen before.
 *
 * The timeline comes from the current WAL file's name, which shows a promotion at once; `pg_control_checkpoint()` lags.
 */
export const openTransaction = statement<OpenedRow>("open-transaction", `SELECT ${LIMITS}, ${HISTORY}`);

export interface OpenedRow {
  readonly system_identifier: string;
  readonly timeline: string;
  readonly wal_position: bigint;
  /** Of the feed: whoever noticed another history has begun a new one. */
  readonly epoch: number;
  /** What is acknowledged here is on a standby's disk too. */
  readonly synchronous: boolean;
  readonly now: Date;
}
