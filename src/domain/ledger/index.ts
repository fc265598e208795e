/**
 * The ledger: all rules of a lane, in one place and as pure functions.
 *
 * A `Ledger` contains some of the database's rows of one lane: the lane's own row, and those transactions, nonce gaps
 * ("holes"), reservations, request ids and intake rows (intents without a nonce) that were loaded. It records which
 * keys it covers. Reading any other key throws `NotLoaded`, because a row that was not loaded may exist (part.ts).
 *
 * `apply` decides on one write of the lane's owner: which step may follow which, which nonce is free, which request is
 * a true repeat. It returns the outcome and `changes`, plain data in the order of events (changes.ts). `foldInto`
 * applies a change to a ledger and is the only way to change one (fold.ts). `apply` uses it as well, so replaying the
 * changes of a lane gives the lane. The cost of both depends on the rows that a write concerns, not on the rows of the
 * lane (ordered-map.ts).
 *
 * A store loads rows under the lane's lock, applies the write and persists the changes. The lane's owner applies the
 * changes to its memory once their commit is acknowledged, and never calls `apply` itself. Not part of the ledger: the
 * check that the writer owns the lane, sequence numbers of the feed, and data of a whole chain.
 */
export { apply, inOrder } from "./apply.ts";
export type * from "./changes.ts";
export type { Moment } from "./draft.ts";
export { foldInto } from "./fold.ts";
export { begunTransaction } from "./fold-transaction.ts";
export type * from "./guard.ts";
export { concernsLimits, foreseen, nothingUsed, unapproved } from "./guard.ts";
export { foreseenMessage } from "./judge-message.ts";
export type * from "./kept.ts";
export { foldKept, keptOf } from "./kept.ts";
export type * from "./kept-transaction.ts";
export { boundTransaction, keptTransaction, stepAcknowledged, stepPlanned, UNSIGNED } from "./kept-transaction.ts";
export type * from "./ledger.ts";
export { actionKeyOf, bareLedger, isSpent, reservationAt, stepsOf } from "./ledger.ts";
export { mayGiveUp, mayMove } from "./may-move.ts";
export type * from "./message-writes.ts";
export { NotLoaded, Part } from "./part.ts";
export { expired, lapsed } from "./settle-intake.ts";
export type * from "./writes.ts";
