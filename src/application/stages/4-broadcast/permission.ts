/**
 * Beside stage 4: whether the bytes of one transaction may leave, asked when they are handed to a connected socket. Kill,
 * suspend, hold, hand-over, our own deadline and a lost session stop the send there, however long it has waited in a line or
 * for a connection.
 *
 * Reads: the term, the lane and the transaction as memory has them at that moment, and the monotonic clock. Writes: nothing.
 * Invariants: I1 and I2 (nothing starts past the deadline or after a hand-over), I6 (only what was claimed asks). A crash
 * leaves the claim, like any other.
 */
import type { MayLeave } from "../../../ports/chain.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { isHeldBack, type Tracked } from "../../lane/tracked.ts";

/** `term`: the term's own part of the question. The attempt is the one that is to be sent now; another one asks anew. */
export function permission(lane: OwnedLane, tx: Tracked, term: MayLeave): MayLeave {
  const { sendOrdinal } = tx.pace;
  const isWanted = () =>
    lane.unmined.get(tx.nonce) === tx && tx.receipt === null && tx.pace.sendOrdinal === sendOrdinal;
  return () => term() && !lane.held && !isHeldBack(tx) && isWanted();
}
