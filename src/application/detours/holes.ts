/**
 * Detour: nonces that nothing holds, and nonces that no node will ever take. Everything above one waits, so it is closed
 * by policy or reported: under `heal` a placeholder takes the nonce and a refused payload is cancelled; under `move` the
 * head of the lane is STUCK, and its reason names the nonce. A nonce whose caller reserved it and fell silent is repaired under
 * either: its caller's transaction is looked for through one more time to live, and then a placeholder takes the nonce.
 *
 * Reads: the lane's holes, the chain's counts, pools and look-ups by sender and nonce. Writes: expiries, a placeholder with its claim
 * (for expired reservations counted within the hour), STUCK and back. Invariants: I9 (never silent), I7 (a hole is acted on only after
 * two looks in which a healthy endpoint had not passed it; an unanswered look decides nothing). A crash leaves the hole, or what
 * closed it; the next owner looks again, and through a whole time to live: it cannot know what was seen before.
 */
import { countNotExceeded, highestCount } from "../../domain/chain/counts.ts";
import { watchDepth } from "../../domain/chain/finality.ts";
import { FencepostError } from "../../domain/errors.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import { headStands } from "../../domain/pace/count-events.ts";
import type { StandingHead } from "../../domain/pace/count-pace.ts";
import {
  blockedBy,
  callersLookedFor,
  countSeen,
  holesPassed,
  repairsLimited,
  unblocked,
} from "../../domain/pace/lane-pace.ts";
import { isThrough } from "../../domain/pace/search.ts";
import { scheduled } from "../../domain/pace/transaction-pace.ts";
import { AT_ONCE, isDue } from "../../domain/pace/when.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import { SignerAway, SigningRefused } from "../../ports/signer.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { inTurn, type Working } from "../lane/activity.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { commitPlanned, plan } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { establish, happened, isRefusedForGood, type Tracked } from "../lane/tracked.ts";
import { stick } from "./another-attempt.ts";
import { changeTracked } from "./change-payload.ts";
import { placeHolder } from "./placeholder.ts";
import { awaitsLessGas } from "./reprice.ts";

export function tendHoles(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  if (!lane.nonces.isDue(ports.clock.monotonicMs())) return tendNonces(ports, context, lane);
  return inTurn(
    () => expire(ports, lane),
    () => tendNonces(ports, context, lane),
  );
}

function tendNonces(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  if (lane.held || (lane.nonces.isWhole && lane.unmined.size === 0)) return null;
  const tending = inTurn(
    () => findSkipped(ports, context, lane),
    () => tendLowest(ports, context, lane),
    () => tendRefused(ports, context, lane),
  );
  if (tending === null) return null;
  return tending.catch((error: unknown) => {
    if (!isUnanswered(error)) throw error;
  });
}

/** The next look asks again. Where the database failed, memory may be ahead, and the lane is read again. */
function isUnanswered(error: unknown) {
  const reason = error instanceof FencepostError && error.code === "UNAVAILABLE" ? error.cause : error;
  return reason instanceof ChainUnavailable || reason instanceof SignerAway;
}

/** The database says which are past; they leave holes that only the policy closes. */
async function expire(ports: LanePorts, lane: OwnedLane) {
  const { holes } = await lane.term.write({ kind: "expire" });
  if (holes.length > 0) await ports.failpoint("expire.committed");
  lane.nonces.askedAt(ports.clock.monotonicMs());
  for (const { nonce, reservationId, detail } of holes) {
    if (reservationId === null) continue;
    const { token } = lane.fence;
    ports.telemetry.emit({ type: "nonce.reserved", lane: lane.lane, token, reservationId, nonce, state: "EXPIRED" });
    const message = `nonce ${nonce} of ${lane.lane.signer} is held by nothing: ${detail}`;
    ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "RESERVATION_EXPIRED", message, lane: lane.lane });
  }
}

/** Only the lowest hole matters, and only while nothing below it is still to be mined and something above it waits. */
function tendLowest(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const [lowest] = lane.nonces.isWhole ? [] : lane.nonces.holes;
  if (lowest !== undefined && mayBePassed(lane, lowest.nonce)) return tendOpen(ports, context, lane);
  return releaseHead(ports, lane);
}

async function tendOpen(ports: LanePorts, context: ChainContext, lane: OwnedLane) {
  const { hole, askedAtMs } = await lowestOpen(ports, context, lane);
  const holdsUp = hole !== null && isFirst(lane, hole.nonce) && hasAbove(lane, hole.nonce);
  if (!holdsUp) {
    await releaseHead(ports, lane);
    return;
  }
  happened(lane, blockedBy, hole.nonce, askedAtMs);
  if (askedAtMs - (lane.pace.blocking?.sinceMs ?? askedAtMs) < context.settings.pollIntervalMs) return;
  await unlessForbidden(tendBlocking(ports, context, lane, hole), (why) =>
    stickHead(ports, lane, { ...hole, detail: `${hole.detail}; no placeholder takes it: ${why}` }),
  );
}

async function tendBlocking(ports: LanePorts, context: ChainContext, lane: OwnedLane, hole: Hole) {
  const { expired } = hole;
  if (expired !== undefined && repairsExpired(ports, context, lane)) {
    const fate = await repairExpired(ports, context, { lane, hole, expired });
    if (fate === "searching") explainHead(ports, lane, hole);
    if (fate === "limited") await stickHead(ports, lane, pastLimit(context, hole));
  } else if (heals(ports, context, lane)) await heal(ports, context, lane, hole);
  else await stickHead(ports, lane, hole);
}

/** A policy may not allow what closing a nonce costs, or the signer not sign it: then it is said aloud, as where nothing may be closed. */
async function unlessForbidden(work: Promise<unknown>, otherwise: (why: string) => Promise<void>) {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof FencepostError && isRefusal(error))) throw error;
    await otherwise(error.message);
  }
}

function isRefusal({ code, cause }: FencepostError) {
  return code === "FORBIDDEN" || cause instanceof SigningRefused;
}

/** A key that the chain node holds signs nothing of our own making: its holes are said aloud, whatever the policy. */
function heals(ports: LanePorts, { settings }: ChainContext, lane: OwnedLane) {
  return settings.holePolicy === "heal" && isLocal(ports, lane);
}

function repairsExpired(ports: LanePorts, { settings }: ChainContext, lane: OwnedLane) {
  return settings.expiredReservations === "placeholder" && isLocal(ports, lane);
}

function isLocal({ signer }: LanePorts, { lane }: OwnedLane) {
  return signer.custody(lane.signer) === "local";
}

function pastLimit({ settings }: ChainContext, hole: Hole) {
  const limit = `${settings.maxReservationRepairs} such nonces were filled in this hour, which is the limit`;
  return { ...hole, detail: `${hole.detail}; ${limit} (FENCEPOST_MAX_RESERVATION_REPAIRS)` };
}

async function heal(ports: LanePorts, context: ChainContext, lane: OwnedLane, hole: Hole) {
  const decision = { actor: "policy", audit: { policy: "heal", action: "PLACEHOLDER", hole: hole.why } };
  const reason = `a placeholder for nonce ${hole.nonce}: ${hole.detail}`;
  await placeHolder(ports, context, { lane, hole, decision, reason });
}

/**
 * The lowest that the chain has not passed, and when that was asked (monotonic). What it has is no hole; after a reorg it
 * may be one again, so it is kept a while.
 */
async function lowestOpen(ports: LanePorts, context: ChainContext, lane: OwnedLane) {
  const { holes } = lane.nonces;
  // What is about to be paid for is looked at once more.
  const pays = heals(ports, context, lane) || repairsExpired(ports, context, lane);
  const atMostMs = pays ? 0 : context.settings.pollIntervalMs;
  const { count, askedAtMs } = await lane.term.during(context.counts.mined(lane.lane.signer, { atMostMs }));
  happened(lane, countSeen, count);
  const passed = holes.filter(({ nonce }) => nonce < count).map(({ nonce }) => nonce);
  await closePassed(ports, context, lane, passed);
  return { hole: holes.find(({ nonce }) => nonce >= count) ?? null, askedAtMs };
}

/** Something waits above it, or was mined there in the same block as what closed it, or it was passed and may come back. */
function mayBePassed(lane: OwnedLane, nonce: number) {
  return hasAbove(lane, nonce) || lane.pace.holeLookOwed || lane.pace.usedBelow > nonce;
}

/** Used by somebody else, and too deep to come back: twice the confirmations, at least 64 blocks. */
async function closePassed(
  ports: LanePorts,
  { chain, follower, settings }: ChainContext,
  lane: OwnedLane,
  nonces: readonly number[],
) {
  const head = follower.head?.number ?? 0;
  for (const nonce of nonces) if (!lane.pace.passedHoles.has(nonce)) reportPassed(ports, lane, nonce);
  happened(lane, holesPassed, nonces, head);
  const { passedHoles: seen } = lane.pace;
  const depth = watchDepth(settings.confirmations);
  const deepAt = (height: number) => nonces.filter((nonce) => height - (seen.get(nonce) ?? head) >= depth);
  const deep = deepAt(head).length === 0 ? [] : deepAt(await lane.term.during(chain.heightReached(head)));
  if (deep.length === 0) return;
  await lane.term.write({ kind: "closeHoles", nonces: deep });
}

function reportPassed({ telemetry }: LanePorts, lane: OwnedLane, nonce: number) {
  const message = `nonce ${nonce} of ${lane.lane.signer} was held by nothing here, and another transaction used it`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "HOLE_USED_ELSEWHERE", message, lane: lane.lane });
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

async function stickHead(ports: LanePorts, lane: OwnedLane, hole: Hole) {
  const explained = explainHead(ports, lane, hole);
  if (explained !== null) await stick(ports, lane, explained.tx, explained.reason);
}

function explainHead(ports: LanePorts, lane: OwnedLane, { nonce, detail }: Hole) {
  const head = lane.unmined.get(lane.headOfLine() ?? -1);
  if (head === undefined) return null;
  const reason = `nonce ${nonce} below it is held by nothing: ${detail}`;
  establish(head, "NONCE_HOLE", { text: reason, since: ports.clock.now() });
  return { tx: head, reason };
}

/** Nothing below the head of the line is missing. */
function releaseHead(ports: LanePorts, lane: OwnedLane): Working {
  happened(lane, unblocked);
  for (const { facts } of lane.unmined.values()) if (facts.has("NONCE_HOLE")) return unstickHead(ports, lane);
  return null;
}

/** What stood in its way is gone: tracked like any other again, and sent at once. */
async function unstickHead(ports: LanePorts, lane: OwnedLane) {
  for (const tx of lane.unmined.values()) {
    if (!tx.facts.delete("NONCE_HOLE") || tx.status.state !== "STUCK" || tx.pace.inHand) continue;
    const reason = "every nonce below it is held again";
    await commitPlanned(ports, lane, [plan(tx, "unstick", { reason })]);
    happened(tx, scheduled, AT_ONCE);
    lane.broadcasting?.kick();
  }
}

/** A payload that no node will ever take leaves its nonce unusable: cancelled, or said aloud where everything waits for it. */
function tendRefused(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const refused: Tracked[] = [];
  for (const tx of lane.unmined.values()) {
    if (isRefusedForGood(tx) && !tx.pace.inHand && !tx.held && isOurs(tx) && !awaitsLessGas(context, tx))
      refused.push(tx);
  }
  return refused.length === 0 ? null : repairEach(ports, context, lane, refused);
}

async function repairEach(ports: LanePorts, context: ChainContext, lane: OwnedLane, refused: readonly Tracked[]) {
  for (const tx of refused) {
    const reason = `no node will take it: ${tx.lastError ?? "it was refused"}`;
    const change = { kind: "cancel", fees: {}, reason, decision: CANCELLED } as const;
    const blocked = async (why: string) => {
      if (tx.nonce === lane.headOfLine()) await stick(ports, lane, tx, `nonce ${tx.nonce} is blocked: ${why}`);
    };
    if (!heals(ports, context, lane)) await blocked(reason);
    else {
      const cancelling = changeTracked(ports, context, { lane, tx, change });
      await unlessForbidden(cancelling, (why) => blocked(`${reason}; ${why}`));
    }
  }
}

/** A cancel that is refused too is not helped by another one. */
function isOurs({ attempts }: Tracked) {
  const newest = attempts.at(-1);
  return newest !== undefined && newest.kind !== "cancel" && newest.kind !== "placeholder" && newest.foreign !== true;
}

const CANCELLED = { actor: "policy", audit: { policy: "heal", action: "CANCEL" } };

/** How many nonces one look goes over; the lowest are closed first, and the rest found when those are mined. */
const SKIPPED_AT_ONCE = 64;

/**
 * Nonces that the lane stepped over for nothing. A mined count above the cursor was believed (stage 2 proves it as well as
 * it can), so the nonces below it counted as used by another program. Where an endpoint lied, or a reorg took the foreign
 * transactions away, the chain waits for a nonce that no transaction holds, and everything above waits with it.
 *
 * Asked is the chain's count by the word of every endpoint that is up; one that lags is waited for. Looks at the pace of
 * stale receipts, and twice a poll interval apart where something is missing: two looks must agree, and the database must
 * have nothing at those nonces.
 */
export function findSkipped(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const head = lane.headOfLine();
  const nowMs = ports.clock.monotonicMs();
  const last = lane.pace.counts.standing;
  if (head === null || last?.head !== head) {
    const dueMs = nowMs + context.settings.staleReceiptTimeoutMs;
    const atBlock = context.follower.head?.number ?? 0;
    if (last !== null || head !== null) {
      happened(lane, headStands, head === null ? null : { head, atBlock, count: null, dueMs });
    }
    return null;
  }
  return nowMs < last.dueMs || lane.cursor === null ? null : lookAgain(ports, context, lane, last);
}

async function lookAgain(ports: LanePorts, context: ChainContext, lane: OwnedLane, last: StandingHead) {
  const { head } = last;
  const nowMs = ports.clock.monotonicMs();
  const { counts, settings } = context;
  const count = countNotExceeded(await lane.term.during(counts.everywhere(lane.lane.signer, last.atBlock)));
  if (count === null) {
    happened(lane, headStands, { ...last, dueMs: nowMs + settings.pollIntervalMs });
    return;
  }
  const missing = count < head && !isHeld(lane, count);
  const again = missing && last.count !== count;
  const paceMs = again ? settings.pollIntervalMs : settings.staleReceiptTimeoutMs;
  happened(lane, headStands, { ...last, count: missing ? count : null, dueMs: nowMs + paceMs });
  if (!missing || again) return;
  const below = Math.min(head, count + SKIPPED_AT_ONCE);
  const { holes } = await lane.term.write({ kind: "findSkipped", from: count, below });
  noteAll(ports, lane, holes);
}

/** Whether the nonce that the chain waits for is known to be somebody's here: then it is waited for, or tended, as such. */
function isHeld(lane: OwnedLane, nonce: number) {
  const waits = lane.backlog.atHand.some((record) => record.nonce === nonce);
  return waits || lane.mined.has(nonce) || lane.nonces.holds(nonce);
}

function noteAll({ telemetry }: LanePorts, lane: OwnedLane, holes: readonly Hole[]) {
  const [first] = holes;
  if (first === undefined) return;
  const message = `${holes.length} nonces of ${lane.lane.signer} from ${first.nonce} on are held by nothing: ${first.detail}`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "NONCE_DRIFT", message, lane: lane.lane });
}

/** How many nonces one look goes over; the lowest are what everything waits for. */
const CALLERS_AT_ONCE = 64;
/** Whether the hour that the database counts in is over is asked about so often. */
const LIMITED_FOR_MS = 60_000;

interface ExpiredHole {
  readonly lane: OwnedLane;
  /** Everything above waits for it. */
  readonly hole: Hole;
  readonly expired: NonNullable<Hole["expired"]>;
}

/** "searching": its caller's transaction may turn up. "limited": the lane has paid for as many in this hour as it may. */
async function repairExpired(ports: LanePorts, context: ChainContext, { lane, hole, expired }: ExpiredHole) {
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
async function lookForCallers(context: ChainContext, { lane, from, nowMs }: Looking) {
  const { searches } = lane.pace;
  const last = searches.get(from)?.lastMs;
  if (last !== undefined && nowMs - last < context.settings.pollIntervalMs) return;
  const expired = lane.nonces.holes.filter(({ nonce, why }) => why === "expired" && nonce >= from);
  const nonces = expired.slice(0, CALLERS_AT_ONCE).map(({ nonce }) => nonce);
  const found = await lane.term.during(foundAt(context, lane, nonces));
  happened(lane, callersLookedFor, { nonces, found, atMs: nowMs });
}

/** A node that cannot list its pool, or has no look-up by nonce, still counts what is pending. Throws `ChainUnavailable`. */
async function foundAt({ chain, counts }: ChainContext, { lane: { signer } }: OwnedLane, nonces: readonly number[]) {
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
