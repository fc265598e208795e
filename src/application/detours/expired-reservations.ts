/**
 * Detour: a caller reserved a nonce and fell silent. What it may have signed is looked for through one more time to live;
 * where nothing is found, a placeholder takes the nonce, so that one silent caller does not hold up the lane for ever.
 *
 * Reads: the pending counts, the pool, the node's look-up by sender and nonce. Writes: a placeholder, counted within the
 * hour. Invariants: I7 (a look that was not answered in full tells nothing), I9. A crash leaves the hole, or what closed it;
 * the next owner looks through a whole time to live again: it cannot know what was seen before.
 */
import { highestCount } from "../../domain/chain/counts.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import { callersLookedFor, isThrough, repairsLimited } from "../../domain/pace/lane-pace.ts";
import { isDue } from "../../domain/pace/when.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { LanePorts } from "../lane/lane-ports.ts";

import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened } from "../lane/tracked.ts";
import { placeHolder } from "./placeholder.ts";

/** How many nonces one look goes over; the lowest are what everything waits for. */
const AT_ONCE = 64;
/** Whether the hour that the database counts in is over is asked about so often. */
const LIMITED_FOR_MS = 60_000;

export interface ExpiredHole {
  readonly lane: OwnedLane;
  /** Everything above waits for it. */
  readonly hole: Hole;
  readonly expired: NonNullable<Hole["expired"]>;
}

/** "searching": its caller's transaction may turn up. "limited": the lane has paid for as many in this hour as it may. */
export async function repairExpired(
  ports: LanePorts,
  context: ChainContext,
  { lane, hole, expired }: ExpiredHole,
): Promise<"repaired" | "searching" | "limited"> {
  const nowMs = ports.clock.monotonicMs();
  if (!isDue(lane.pace.nextRepair, nowMs)) return "limited";
  await lookForCallers(context, { lane, from: hole.nonce, nowMs });
  if (!isThrough(lane.pace.searches.get(hole.nonce), expired.ttlMs)) return "searching";
  const { maxReservationRepairs: mostPerHour } = context.settings;
  const { owner } = expired;
  const audit = { policy: "expiredReservations", action: "PLACEHOLDER", reservationId: hole.reservationId, owner };
  const reason = `a placeholder for nonce ${hole.nonce}: ${hole.detail}, and no transaction of its caller's was found`;
  const decision = { actor: "policy", audit };
  const fate = await placeHolder(ports, context, { lane, hole, reason, decision, mostPerHour });
  if (fate !== "limited") return "repaired";
  happened(lane, repairsLimited, nowMs + LIMITED_FOR_MS);
  return "limited";
}

interface Looking {
  readonly lane: OwnedLane;
  /** What lies below was passed by the chain. */
  readonly from: number;
  readonly nowMs: number;
}

/** For every expired one at once: sixteen nonces that are kept for ten minutes each are not looked for one after the other. */
async function lookForCallers(context: ChainContext, { lane, from, nowMs }: Looking): Promise<void> {
  const { searches } = lane.pace;
  const last = searches.get(from)?.lastMs;
  if (last !== undefined && nowMs - last < context.settings.pollIntervalMs) return;
  const expired = lane.nonces.holes.filter(({ nonce, why }) => why === "expired" && nonce >= from);
  const nonces = expired.slice(0, AT_ONCE).map(({ nonce }) => nonce);
  const found = await lane.term.during(foundAt(context, lane, nonces));
  happened(lane, callersLookedFor, { nonces, found, atMs: nowMs });
}

/** A node that cannot list its pool, or has no look-up by nonce, still counts what is pending. Throws `ChainUnavailable`. */
async function foundAt(
  { chain, counts }: ChainContext,
  { lane: { signer } }: OwnedLane,
  nonces: readonly number[],
): Promise<ReadonlySet<number>> {
  const pending = await counts.everywhere(signer, 0, "pending");
  if (pending.some(({ kind }) => kind === "silent"))
    throw new ChainUnavailable("an endpoint did not count what is pending");
  const counted = highestCount(pending);
  const pooled = await chain.pooled(signer, nonces);
  const found = new Set(nonces.filter((nonce, index) => nonce < counted || (pooled?.[index] ?? null) !== null));
  for (const nonce of nonces) {
    const sent = await chain.transactionBySenderAndNonce(signer, nonce);
    if (sent === "unsupported") break;
    if (sent !== null) found.add(nonce);
  }
  return found;
}
