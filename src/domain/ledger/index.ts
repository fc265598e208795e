/**
 * The ledger: every rule of a lane, in one place and pure.
 *
 * A `Ledger` is a part of what the database holds of one lane: the lane's own row, and those transactions, holes,
 * reservations, request ids and intake rows that somebody loaded. A part says what it covers, and asking it about
 * anything else throws `NotLoaded`, because a row that was not loaded may exist (part.ts).
 * `apply` judges one write of the lane's owner: what may follow what, which nonce is free, which repeat is honest. It
 * answers with the outcome and with `changes`, plain data in the order it happened (changes.ts). `foldInto` puts a change into
 * a ledger and is the only way in which one comes to stand differently (fold.ts); `apply` goes through it as well, so
 * replaying the changes of a lane gives the lane. Both cost by what a write is about, not by the rows of the lane
 * (ordered-map.ts).
 * A store loads a part behind the lane's lock, applies and persists the changes; the lane's owner folds changes into what
 * it remembers once their commit is acknowledged, and never applies a write itself.
 * Outside stay: whether the writer may write (the fence), numbers of the feed, and what belongs to a whole chain.
 */
export { apply, inOrder } from "./apply.ts";
export type * from "./changes.ts";
export type { Moment } from "./draft.ts";
export { foldInto } from "./fold.ts";
export { begunTransaction } from "./fold-transaction.ts";
export type * from "./guard.ts";
export { concernsLimits, foreseen, nothingUsed, unapproved } from "./guard.ts";
export type * from "./kept.ts";
export { foldKept, keptOf } from "./kept.ts";
export type * from "./kept-transaction.ts";
export { boundTransaction, keptTransaction, stepAcknowledged, stepPlanned, UNSIGNED } from "./kept-transaction.ts";
export type * from "./ledger.ts";
export { bareLedger, isSpent, orderKeyOf, reservationAt, stepsOf } from "./ledger.ts";
export { mayGiveUp, mayMove } from "./may-move.ts";
export { NotLoaded, Part } from "./part.ts";
export { expired, lapsed } from "./settle-intake.ts";
export type * from "./writes.ts";
