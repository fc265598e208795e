/**
 * Detour: a payload was refused because it asks for more gas than the chain takes in one transaction, a limit that was
 * not known when it was signed. What it needs may still fit: then the same payload is signed again with less.
 *
 * Reads: the caller's payload, a new estimate, the bytes of its newest attempt. Writes: another attempt (another-attempt.ts).
 * Invariants: I3 (same nonce, same receiver, value, data and fees), I6. Gas that the caller named is the caller's: it is
 * left as it is, and the hole policy decides. So is what does not fit.
 * A crash leaves what another-attempt.ts leaves; the next owner sends the newest attempt and learns the limit anew.
 */
import { attemptToSend, repricedKind } from "../../domain/attempts.ts";
import { type Bounded, bounded, feeLimit } from "../../domain/ceilings.ts";
import { feeCap } from "../../domain/fees.ts";
import { withMargin } from "../../domain/gas.ts";
import { gasJudged } from "../../domain/pace/transaction-pace.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import type { LaneStore } from "../../ports/lane-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { simulateWithin } from "../chain/gas-needed.ts";
import type { Working } from "../lane/activity.ts";
import { happened } from "../lane/happened.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { decodedNewest, rebuildable, type StoredBytes } from "../lane/stored-bytes.ts";
import type { Tracked } from "../lane/tracked.ts";
import { type AnotherAttemptPorts, signAnother } from "./another-attempt.ts";

export interface LowerGasPorts extends AnotherAttemptPorts, StoredBytes {
  readonly store: StoredBytes["store"] & Pick<LaneStore, "loadPayloads">;
}

export function lowerGas(ports: LowerGasPorts, context: ChainContext, lane: OwnedLane): Working {
  if (context.gasLimits.cap === null) return null;
  const waiting = [...lane.unmined.values()].filter((each) => awaitsLessGas(context, each));
  return waiting.length === 0 ? null : lowerEach(ports, context, { lane, waiting });
}

async function lowerEach(
  ports: LowerGasPorts,
  context: ChainContext,
  { lane, waiting }: { readonly lane: OwnedLane; readonly waiting: readonly Tracked[] },
): Promise<void> {
  for (const tx of waiting) {
    if (lane.held) return;
    try {
      await lowerOne(ports, context, { lane, tx });
    } catch (error) {
      // Nothing was found out, so nothing is decided: it is looked at again.
      if (!(error instanceof ChainUnavailable)) throw error;
    }
  }
}

/** Refused for a gas limit above the chain's cap, by everybody, and what it really needs was not looked at since. */
export function awaitsLessGas({ gasLimits, settings }: ChainContext, tx: Tracked): boolean {
  const { cap } = gasLimits;
  if (cap === null || tx.pace.answer !== "rejected" || tx.acceptedOrdinal !== null || tx.pace.inHand) return false;
  if (tx.pace.gasJudgedAt === tx.pace.rejections || tx.receipt !== null) return false;
  if (settings.maxAttempts !== 0 && tx.attempts.length >= settings.maxAttempts) return false;
  const newest = attemptToSend(tx.attempts);
  if (newest === null || newest.nodeSigned === true || newest.gas <= cap) return false;
  // Once: an endpoint that names less each time would have payloads signed without end.
  return repricedKind(tx.attempts) === "reprice" && tx.attempts.every(({ gas }) => gas <= newest.gas);
}

interface Work {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
}

async function lowerOne(ports: LowerGasPorts, context: ChainContext, { lane, tx }: Work): Promise<void> {
  const { rejections } = tx.pace;
  const over = tx.attempts.length;
  const unsigned = await lane.term.during(withLessGas(ports, context, { lane, tx }));
  if (tx.attempts.length !== over || tx.pace.rejections !== rejections) return;
  happened(tx, gasJudged, rejections);
  if (unsigned === null) return;
  const reason = `the chain takes no more than ${context.gasLimits.cap} gas in one transaction`;
  await signAnother(ports, lane, { tx, payload: { kind: "reprice", unsigned, over, about: "cost", reason } });
}

/** Null: the caller named the gas, what it needs does not fit, or a ceiling was lowered below its price since. */
async function withLessGas(ports: LowerGasPorts, context: ChainContext, { lane, tx }: Work): Promise<Bounded | null> {
  const [stored] = await ports.store.loadPayloads([tx.txId]);
  if (stored === undefined || stored.payload.gas !== undefined) return null;
  const decoded = await decodedNewest(ports, tx);
  const unsigned = decoded === null ? null : rebuildable(decoded);
  if (unsigned === null) return null;
  const { to, data, value, accessList } = unsigned;
  const simulation = await simulateWithin(context, { from: lane.lane.signer, to, data, value, accessList });
  if (simulation.outcome !== "ok") return null;
  const gas = withMargin(simulation.gas, { to, data }, context.gasLimits.most?.gas ?? null);
  const isAllowed = feeCap(unsigned.fees) <= feeLimit(context.ceilings, { gas, value }).most;
  return isAllowed ? bounded(context.ceilings, { ...unsigned, gas }) : null;
}
