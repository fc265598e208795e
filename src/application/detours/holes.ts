/**
 * Detour: nonces that no transaction holds, and nonces whose payload no node will ever accept. All transactions above
 * such a nonce wait, so it is closed by policy or reported. Under `heal` a placeholder takes the nonce, and a refused
 * payload is cancelled. Under `move` the lane's lowest open transaction is reported as STUCK, with the nonce in its
 * reason. A reserved nonce whose caller never used it is repaired under either policy: the caller's transaction is
 * looked for during one more time to live, then a placeholder takes the nonce.
 *
 * Reads: the lane's holes, the chain's counts, pools and look-ups by sender and nonce. Writes: expiries, a placeholder
 * with its claim (for expired reservations counted within the hour), STUCK and back. Invariants: I9 (never silent), I7
 * (a hole is acted on only after two checks in which a healthy endpoint had not passed it; an unanswered check decides
 * nothing). A crash leaves the hole, or what closed it; the next owner checks again for a whole time to live, because
 * it cannot know what was seen before.
 */
import { countReached, highestCount } from "../../domain/chain/counts.ts";
import { watchDepth } from "../../domain/chain/finality.ts";
import { FencepostError } from "../../domain/errors.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import {
  blockedBy,
  callersLookedFor,
  countSeen,
  holesPassed,
  isThrough,
  repairsLimited,
  unblocked,
} from "../../domain/pace/lane-pace.ts";
import { scheduled } from "../../domain/pace/transaction-pace.ts";
import { AT_ONCE, isDue } from "../../domain/pace/when.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import { SignerAway, SigningRefused } from "../../ports/signer.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { LaneWork } from "../chain/work-ports.ts";
import { inTurn, type Working } from "../lane/activity.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { commitPlanned, plan } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { establish, happened, isRefusedForGood, type Tracked } from "../lane/tracked.ts";
import { placeHolder, stick } from "./another-attempt.ts";
import { changeTracked } from "./change-payload.ts";

import { awaitsLessGas } from "./reprice.ts";
import { findSkipped, NONCES_AT_ONCE } from "./skipped-nonces.ts";

export function tendHoles(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const work = { ports, context, lane };
  if (!lane.nonces.isDue(ports.clock.monotonicMs())) return tendNonces(work);
  return inTurn(
    () => expire(work),
    () => tendNonces(work),
  );
}

function tendNonces(work: LaneWork): Working {
  const { held, nonces, unmined } = work.lane;
  if (held || (nonces.isWhole && unmined.size === 0)) return null;
  const tending = inTurn(
    () => findSkipped(work),
    () => tendLowest(work),
    () => tendRefused(work),
  );
  if (tending === null) return null;
  return tending.catch((error: unknown) => {
    if (!isUnanswered(error)) throw error;
  });
}

/**
 * True if the chain or the signer did not answer: the next check tries again. Any other error is thrown. After a
 * failure of the database, memory may be ahead of it, so the lane is then reloaded.
 */
function isUnanswered(error: unknown) {
  const reason = error instanceof FencepostError && error.code === "UNAVAILABLE" ? error.cause : error;
  return reason instanceof ChainUnavailable || reason instanceof SignerAway;
}

/** Expires reservations by the database's clock; they leave holes that are closed only by policy. */
async function expire({ ports, lane: { term, nonces, lane, fence } }: LaneWork) {
  const { holes } = await term.write({ kind: "expire" });
  if (holes.length > 0) await ports.failpoint("expire.committed");
  nonces.askedAt(ports.clock.monotonicMs());
  for (const { nonce, reservationId, detail } of holes) {
    if (reservationId === null) continue;
    const { token } = fence;
    ports.telemetry.emit({ type: "nonce.reserved", lane, token, reservationId, nonce, state: "EXPIRED" });
    const message = `nonce ${nonce} of ${lane.signer} is held by nothing: ${detail}`;
    ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "RESERVATION_EXPIRED", message, lane });
  }
}

/** Handles the lowest hole. It matters only if every nonce below it is mined and a transaction above it waits. */
function tendLowest(work: LaneWork) {
  const { lane } = work;
  const [lowest] = lane.nonces.isWhole ? [] : lane.nonces.holes;
  return lowest !== undefined && mayBePassed(lane, lowest.nonce) ? tendOpen(work) : releaseHead(work);
}

async function tendOpen(work: LaneWork) {
  const { context, lane } = work;
  const lowest = await lowestOpen(work);
  if (lowest === null) return;
  const { hole, askedAtMs } = lowest;
  const holdsUp = hole !== null && isFirst(lane, hole.nonce) && hasAbove(lane, hole.nonce);
  if (!holdsUp) {
    await releaseHead(work);
    return;
  }
  happened(lane, blockedBy, hole.nonce, askedAtMs);
  if (askedAtMs - (lane.pace.blocking?.sinceMs ?? askedAtMs) < context.settings.pollIntervalMs) return;
  await unlessForbidden(tendBlocking(work, hole), (why) => stickHead(work, hole, `; no placeholder takes it: ${why}`));
}

async function tendBlocking(work: LaneWork, hole: Hole) {
  const { settings } = work.context;
  if (hole.expired !== undefined && settings.expiredReservations === "placeholder" && isLocal(work)) {
    const result = await repairExpired(work, hole, hole.expired);
    if (result === "searching") explainHead(work, hole);
    const limit = `${settings.maxReservationRepairs} such nonces were filled in this hour, which is the limit`;
    if (result === "limited") await stickHead(work, hole, `; ${limit} (FENCEPOST_MAX_RESERVATION_REPAIRS)`);
  } else if (heals(work)) {
    const decision = { actor: "policy", audit: { policy: "heal", action: "PLACEHOLDER", hole: hole.why } };
    const reason = `a placeholder for nonce ${hole.nonce}: ${hole.detail}`;
    await placeHolder({ ...work, hole, reason, decision });
  } else await stickHead(work, hole);
}

/**
 * If a policy forbids the cost of filling the nonce, or the signer refuses to sign, the problem is only reported, as
 * under the policy `move`.
 */
async function unlessForbidden(work: Promise<unknown>, otherwise: (why: string) => Promise<void>) {
  try {
    await work;
  } catch (error) {
    const isRefusal =
      error instanceof FencepostError && (error.code === "FORBIDDEN" || error.cause instanceof SigningRefused);
    if (!isRefusal) throw error;
    await otherwise(error.message);
  }
}

function heals(work: LaneWork) {
  return work.context.settings.holePolicy === "heal" && isLocal(work);
}

/**
 * False if the chain node holds the key: then Fencepost signs no transactions of its own with it, so nonce gaps of the
 * lane are only reported.
 */
function isLocal({ ports, lane }: LaneWork) {
  return ports.signer.custody(lane.lane.signer) === "local";
}

/**
 * The lowest hole that the chain's count has not passed, and the monotonic time at which the count was requested. A
 * nonce below the count is used and no longer a hole, but it is remembered for a while, because a reorg may make it a
 * hole again. Null: one endpoint says that the nonce is used, which the others do not confirm.
 */
async function lowestOpen(work: LaneWork) {
  const { lane } = work;
  const { holes } = lane.nonces;
  const { settings, counts, follower } = work.context;
  // Request the transaction count anew before a placeholder is paid for.
  const pays = (settings.holePolicy === "heal" || settings.expiredReservations === "placeholder") && isLocal(work);
  const atMostMs = pays ? 0 : settings.pollIntervalMs;
  const { count, askedAtMs } = await lane.term.during(counts.mined(lane.lane.signer, { atMostMs }));
  happened(lane, countSeen, count);
  const isClaimed = holes.some(({ nonce }) => nonce < count);
  const all = isClaimed ? await lane.term.during(counts.everywhere(lane.lane.signer, follower.head?.number ?? 0)) : [];
  const proved = isClaimed ? countReached(all) : count;
  await closePassed(
    work,
    holes.flatMap(({ nonce }) => (nonce < proved ? [nonce] : [])),
  );
  const hole = holes.find(({ nonce }) => nonce >= proved) ?? null;
  return hole !== null && hole.nonce < count ? null : { hole, askedAtMs };
}

/**
 * True if the chain's count must be checked for this nonce: a transaction above it waits or was mined since the last
 * check, or the count had passed the nonce before and a reorg may reopen it.
 */
function mayBePassed(lane: OwnedLane, nonce: number) {
  return hasAbove(lane, nonce) || lane.pace.holeLookOwed || lane.pace.usedBelow > nonce;
}

/** Closes holes whose nonce another program used, too deep for a reorg: 2 × confirmations, at least 64 blocks. */
async function closePassed({ ports, context, lane }: LaneWork, nonces: readonly number[]) {
  const { chain, follower, settings } = context;
  const head = follower.head?.number ?? 0;
  for (const nonce of nonces) {
    if (lane.pace.passedHoles.has(nonce)) continue;
    const message = `nonce ${nonce} of ${lane.lane.signer} was held by nothing here, and another transaction used it`;
    ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "HOLE_USED_ELSEWHERE", message, lane: lane.lane });
  }
  happened(lane, holesPassed, nonces, head);
  const { passedHoles: seen } = lane.pace;
  const depth = watchDepth(settings.confirmations);
  const deepAt = (height: number) => nonces.filter((nonce) => height - (seen.get(nonce) ?? head) >= depth);
  const deep = deepAt(head).length === 0 ? [] : deepAt(await lane.term.during(chain.heightReached(head)));
  if (deep.length > 0) await lane.term.write({ kind: "closeHoles", nonces: deep });
}

function isFirst(lane: OwnedLane, nonce: number) {
  const reserved = lane.nonces.lowestReserved();
  const head = lane.headOfLine();
  return (reserved === null || reserved > nonce) && (head === null || head > nonce);
}

function hasAbove(lane: OwnedLane, nonce: number) {
  for (const each of lane.unmined.keys()) if (each > nonce) return true;
  return lane.backlog.atHand.some((record) => record.nonce > nonce);
}

async function stickHead(work: LaneWork, hole: Hole, more = "") {
  const explained = explainHead(work, { ...hole, detail: `${hole.detail}${more}` });
  if (explained !== null) await stick(work.ports, work.lane, explained.tx, explained.reason);
}

function explainHead({ ports, lane }: LaneWork, { nonce, detail }: Hole) {
  const tx = lane.unmined.get(lane.headOfLine() ?? -1);
  if (tx === undefined) return null;
  const reason = `nonce ${nonce} below it is held by nothing: ${detail}`;
  establish(tx, "NONCE_HOLE", { text: reason, since: ports.clock.now() });
  return { tx, reason };
}

/**
 * Called if no nonce below the lane's lowest open transaction is missing: that transaction no longer waits for a hole
 * to be closed.
 */
function releaseHead(work: LaneWork): Working {
  happened(work.lane, unblocked);
  for (const { facts } of work.lane.unmined.values()) if (facts.has("NONCE_HOLE")) return unstickHead(work);
  return null;
}

/**
 * Called when the hole below the lane's lowest open transaction is closed: that transaction is no longer STUCK, and is
 * sent at once.
 */
async function unstickHead({ ports, lane }: LaneWork) {
  for (const tx of lane.unmined.values()) {
    if (!tx.facts.delete("NONCE_HOLE") || tx.status.state !== "STUCK" || tx.pace.inHand) continue;
    await commitPlanned(ports, lane, [plan(tx, "unstick", { reason: "every nonce below it is held again" })]);
    happened(tx, scheduled, AT_ONCE);
    lane.broadcasting?.kick();
  }
}

/**
 * Handles payloads that no node will ever accept, which make their nonce unusable. Each is cancelled, or reported if it
 * is the lane's lowest open transaction.
 */
function tendRefused(work: LaneWork): Working {
  const refused: Tracked[] = [];
  for (const tx of work.lane.unmined.values()) {
    if (isRefusedForGood(tx) && !tx.pace.inHand && !tx.held && isOurs(tx) && !awaitsLessGas(work.context, tx))
      refused.push(tx);
  }
  return refused.length === 0 ? null : repairEach(work, refused);
}

async function repairEach(work: LaneWork, refused: readonly Tracked[]) {
  const { ports, lane } = work;
  for (const tx of refused) {
    const reason = `no node will take it: ${tx.lastError ?? "it was refused"}`;
    const change = { kind: "cancel", fees: {}, reason, decision: CANCELLED } as const;
    const blocked = async (why: string) => {
      if (tx.nonce === lane.headOfLine()) await stick(ports, lane, tx, `nonce ${tx.nonce} is blocked: ${why}`);
    };
    if (!heals(work)) await blocked(reason);
    else {
      const cancelling = changeTracked({ ...work, tx, change });
      await unlessForbidden(cancelling, (why) => blocked(`${reason}; ${why}`));
    }
  }
}

/**
 * True if the newest attempt is a normal payload of our own. A refused cancel is not cancelled again, because that
 * would not help.
 */
function isOurs({ attempts }: Tracked) {
  const newest = attempts.at(-1);
  return newest !== undefined && newest.kind !== "cancel" && newest.kind !== "placeholder" && newest.foreign !== true;
}

const CANCELLED = { actor: "policy", audit: { policy: "heal", action: "CANCEL" } };

/**
 * Pause in ms after the hourly limit of repairs was reached. Then the database, which counts the repairs of the last
 * hour, is asked again.
 */
const LIMITED_FOR_MS = 60_000;

/**
 * Repairs the nonce of an expired reservation. "searching": the caller's transaction may still be found. "limited": the
 * lane has reached its hourly limit of paid repairs.
 */
async function repairExpired(work: LaneWork, hole: Hole, { owner, ttlMs }: NonNullable<Hole["expired"]>) {
  const { ports, context, lane } = work;
  const nowMs = ports.clock.monotonicMs();
  if (!isDue(lane.pace.nextRepair, nowMs)) return "limited";
  await lookForCallers(work, hole.nonce, nowMs);
  if (!isThrough(lane.pace.searches.get(hole.nonce), ttlMs)) return "searching";
  const { maxReservationRepairs: mostPerHour } = context.settings;
  const audit = { policy: "expiredReservations", action: "PLACEHOLDER", reservationId: hole.reservationId, owner };
  const decision = { actor: "policy", audit };
  const reason = `a placeholder for nonce ${hole.nonce}: ${hole.detail}, and no transaction of its caller's was found`;
  if ((await placeHolder({ ...work, hole, reason, decision, mostPerHour })) !== "limited") return "repaired";
  happened(lane, repairsLimited, nowMs + LIMITED_FOR_MS);
  return "limited";
}

/**
 * Searches for the callers' transactions of all expired reservations from this nonce on at once. Each search lasts as
 * long as its reservation did, so sixteen of ten minutes each must not run one after the other.
 */
async function lookForCallers({ context, lane }: LaneWork, from: number, nowMs: number) {
  const last = lane.pace.searches.get(from)?.lastMs;
  if (last !== undefined && nowMs - last < context.settings.pollIntervalMs) return;
  const expired = lane.nonces.holes.filter(({ nonce, why }) => why === "expired" && nonce >= from);
  const nonces = expired.slice(0, NONCES_AT_ONCE).map(({ nonce }) => nonce);
  const found = await lane.term.during(foundAt(context, lane, nonces));
  happened(lane, callersLookedFor, { nonces, found, atMs: nowMs });
}

/**
 * Nonces at which a transaction of the caller is found. Even a node that cannot list its pool or look up a transaction
 * by nonce reports a pending count, which is used too. Throws `ChainUnavailable`.
 */
async function foundAt({ chain, counts }: ChainContext, { lane: { signer } }: OwnedLane, nonces: readonly number[]) {
  const pending = await counts.everywhere(signer, 0, "pending");
  if (pending.some(({ kind }) => kind === "silent"))
    throw new ChainUnavailable("an endpoint did not return the pending transaction count");
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
