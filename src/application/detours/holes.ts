/**
 * Detour: nonces that nothing holds, and nonces that no node will ever take. Everything above one waits, so it is closed
 * by policy or said aloud: under `heal` a placeholder takes the nonce and a refused payload is cancelled; under `move` the
 * head of the lane is STUCK, and its reason names the nonce.
 *
 * Reads: the lane's holes, the chain's count. Writes: expiries, a placeholder with its claim, STUCK and back. Invariants: I9
 * (never silent), I7 (a hole is acted on only after two looks in which a healthy endpoint had not passed it).
 * A crash leaves the hole, or what closed it; the next owner looks again.
 */
import { FencepostError } from "../../domain/errors.ts";
import { watchDepth } from "../../domain/finality.ts";
import type { Hole } from "../../domain/holes.ts";
import { blockedBy, countSeen, holesPassed, unblocked } from "../../domain/pace/lane-pace.ts";
import { scheduled } from "../../domain/pace/transaction-pace.ts";
import { AT_ONCE } from "../../domain/pace/when.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import type { BoundedSigner } from "../../ports/signer.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { inTurn, type Working } from "../lane/activity.ts";
import { happened } from "../lane/happened.ts";
import { commitPlanned, plan } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { establish, isRefusedForGood, type Tracked } from "../lane/tracked.ts";
import { type ChangePorts, changeTracked } from "./change-payload.ts";
import { awaitsLessGas } from "./lower-gas.ts";
import { type PlaceholderPorts, placeHolder } from "./placeholder.ts";
import { findSkipped } from "./skipped.ts";
import { type StuckPorts, stick } from "./stuck.ts";

export interface HolePorts extends PlaceholderPorts, ChangePorts, StuckPorts {
  readonly signer: BoundedSigner;
}

export function tendHoles(ports: HolePorts, context: ChainContext, lane: OwnedLane): Working {
  if (!lane.nonces.isDue(ports.clock.monotonicMs())) return tendNonces(ports, context, lane);
  return inTurn(
    () => expire(ports, lane),
    () => tendNonces(ports, context, lane),
  );
}

function tendNonces(ports: HolePorts, context: ChainContext, lane: OwnedLane): Working {
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

/** The next look asks again. Where a signer or the database failed, memory may be ahead, and the lane is read again. */
function isUnanswered(error: unknown): boolean {
  const reason = error instanceof FencepostError && error.code === "UNAVAILABLE" ? error.cause : error;
  return reason instanceof ChainUnavailable;
}

/** The database says which are past; they leave holes that only the policy closes. */
async function expire(ports: HolePorts, lane: OwnedLane): Promise<void> {
  const { holes } = await lane.term.write({ kind: "expire" });
  if (holes.length > 0) await ports.failpoint("expire.committed");
  lane.nonces.askedAt(ports.clock.monotonicMs());
  for (const { nonce, reservationId, detail } of holes) {
    if (reservationId === null) continue;
    ports.telemetry.emit({ type: "nonce.reserved", lane: lane.lane, reservationId, nonce, state: "EXPIRED" });
    const message = `nonce ${nonce} of ${lane.lane.signer} is held by nothing: ${detail}`;
    ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "RESERVATION_EXPIRED", message, lane: lane.lane });
  }
}

/** Only the lowest hole matters, and only while nothing below it is still to be mined and something above it waits. */
function tendLowest(ports: HolePorts, context: ChainContext, lane: OwnedLane): Working {
  const [lowest] = lane.nonces.isWhole ? [] : lane.nonces.holes;
  if (lowest !== undefined && mayBePassed(lane, lowest.nonce)) return tendOpen(ports, context, lane);
  return releaseHead(ports, lane);
}

async function tendOpen(ports: HolePorts, context: ChainContext, lane: OwnedLane): Promise<void> {
  const { hole, askedAtMs } = await lowestOpen(ports, context, lane);
  const holdsUp = hole !== null && isFirst(lane, hole.nonce) && hasAbove(lane, hole.nonce);
  if (!holdsUp) {
    await releaseHead(ports, lane);
    return;
  }
  happened(lane, blockedBy, hole.nonce, askedAtMs);
  if (askedAtMs - (lane.pace.blocking?.sinceMs ?? askedAtMs) < context.settings.pollIntervalMs) return;
  if (!heals(ports, context, lane)) return stickHead(ports, lane, hole);
  await unlessForbidden(heal(ports, context, { lane, hole }), (why) =>
    stickHead(ports, lane, { ...hole, detail: `${hole.detail}; no placeholder takes it: ${why}` }),
  );
}

/** A policy may not allow what closing a nonce costs: then it is said aloud, as where nothing may be closed. */
function unlessForbidden(work: Promise<void>, otherwise: (why: string) => Promise<void>): Promise<void> {
  return work.catch((error: unknown) => {
    if (error instanceof FencepostError && error.code === "FORBIDDEN") return otherwise(error.message);
    throw error;
  });
}

/** A key that the chain node holds signs nothing of our own making: its holes are said aloud, whatever the policy. */
function heals({ signer }: HolePorts, { settings }: ChainContext, { lane }: OwnedLane): boolean {
  return settings.holePolicy === "heal" && signer.custody(lane.signer) === "local";
}

async function heal(
  ports: HolePorts,
  context: ChainContext,
  { lane, hole }: { readonly lane: OwnedLane; readonly hole: Hole },
): Promise<void> {
  const decision = { actor: "policy", audit: { policy: "heal", action: "PLACEHOLDER", hole: hole.why } };
  await placeHolder(ports, context, {
    ...{ lane, hole, decision, reason: `a placeholder for nonce ${hole.nonce}: ${hole.detail}` },
  });
}

interface Lowest {
  readonly hole: Hole | null;
  /** Monotonic: when the count was asked for that has not passed it. */
  readonly askedAtMs: number;
}

/** The lowest that the chain has not passed. What it has is no hole; after a reorg it may be one again, so it is kept a while. */
async function lowestOpen(ports: HolePorts, context: ChainContext, lane: OwnedLane): Promise<Lowest> {
  const { holes } = lane.nonces;
  // What is about to be paid for is looked at once more.
  const atMostMs = heals(ports, context, lane) ? 0 : context.settings.pollIntervalMs;
  const { count, askedAtMs } = await lane.term.during(context.counts.mined(lane.lane.signer, { atMostMs }));
  happened(lane, countSeen, count);
  await closePassed(ports, context, { lane, passedHoles: holes.filter(({ nonce }) => nonce < count) });
  return { hole: holes.find(({ nonce }) => nonce >= count) ?? null, askedAtMs };
}

/** Something waits above it, or was mined there in the same block as what closed it, or it was passed and may come back. */
function mayBePassed(lane: OwnedLane, nonce: number): boolean {
  return hasAbove(lane, nonce) || lane.pace.holeLookOwed || lane.pace.usedBelow > nonce;
}

/** Used by somebody else, and too deep to come back: twice the confirmations, at least 64 blocks. */
async function closePassed(
  ports: HolePorts,
  { chain, follower, settings }: ChainContext,
  { lane, passedHoles }: { readonly lane: OwnedLane; readonly passedHoles: readonly Hole[] },
): Promise<void> {
  const head = follower.head?.number ?? 0;
  const nonces = passedHoles.map(({ nonce }) => nonce);
  for (const nonce of nonces) if (!lane.pace.passedHoles.has(nonce)) reportPassed(ports, lane, nonce);
  happened(lane, holesPassed, nonces, head);
  const { passedHoles: seen } = lane.pace;
  const depth = watchDepth(settings.confirmations);
  const deepAt = (height: number) => nonces.filter((nonce) => height - (seen.get(nonce) ?? head) >= depth);
  const deep = deepAt(head).length === 0 ? [] : deepAt(await lane.term.during(chain.heightReached(head)));
  if (deep.length === 0) return;
  await lane.term.write({ kind: "closeHoles", nonces: deep });
}

function reportPassed({ telemetry }: HolePorts, lane: OwnedLane, nonce: number): void {
  const message = `nonce ${nonce} of ${lane.lane.signer} was held by nothing here, and another transaction used it`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "HOLE_USED_ELSEWHERE", message, lane: lane.lane });
}

function isFirst(lane: OwnedLane, nonce: number): boolean {
  const reserved = lane.nonces.lowestReserved();
  const head = lane.headOfLine();
  return (reserved === null || reserved > nonce) && (head === null || head > nonce);
}

function hasAbove(lane: OwnedLane, nonce: number): boolean {
  for (const each of lane.unmined.keys()) if (each > nonce) return true;
  return lane.backlog.atHand.some((record) => record.nonce > nonce);
}

async function stickHead(ports: HolePorts, lane: OwnedLane, { nonce, detail }: Hole): Promise<void> {
  const head = lane.unmined.get(lane.headOfLine() ?? -1);
  if (head === undefined) return;
  const text = `nonce ${nonce} below it is held by nothing: ${detail}`;
  establish(head, "NONCE_HOLE", { text, since: ports.clock.now() });
  await stick(ports, lane, { tx: head, reason: text });
}

/** Nothing below the head of the line is missing. */
function releaseHead(ports: HolePorts, lane: OwnedLane): Working {
  happened(lane, unblocked);
  for (const { facts } of lane.unmined.values()) if (facts.has("NONCE_HOLE")) return unstickHead(ports, lane);
  return null;
}

/** What stood in its way is gone: tracked like any other again, and sent at once. */
async function unstickHead(ports: HolePorts, lane: OwnedLane): Promise<void> {
  for (const tx of lane.unmined.values()) {
    if (!tx.facts.delete("NONCE_HOLE") || tx.status.state !== "STUCK" || tx.pace.inHand) continue;
    const reason = "every nonce below it is held again";
    await commitPlanned(ports, lane, [plan(tx, "unstick", { reason })]);
    happened(tx, scheduled, AT_ONCE);
    lane.broadcasting?.kick();
  }
}

/** A payload that no node will ever take leaves its nonce unusable: cancelled, or said aloud where everything waits for it. */
function tendRefused(ports: HolePorts, context: ChainContext, lane: OwnedLane): Working {
  const refused: Tracked[] = [];
  for (const tx of lane.unmined.values()) {
    if (isRefusedForGood(tx) && !tx.pace.inHand && isOurs(tx) && !awaitsLessGas(context, tx)) refused.push(tx);
  }
  return refused.length === 0 ? null : repairEach(ports, context, { lane, refused });
}

async function repairEach(
  ports: HolePorts,
  context: ChainContext,
  { lane, refused }: { readonly lane: OwnedLane; readonly refused: readonly Tracked[] },
): Promise<void> {
  for (const tx of refused) {
    const reason = `no node will take it: ${tx.lastError ?? "it was refused"}`;
    const blocked = async (why: string): Promise<void> => {
      if (tx.nonce !== lane.headOfLine()) return;
      await stick(ports, lane, { tx, reason: `nonce ${tx.nonce} is blocked: ${why}` });
    };
    if (!heals(ports, context, lane)) await blocked(reason);
    else await unlessForbidden(cancel(ports, context, { lane, tx, reason }), (why) => blocked(`${reason}; ${why}`));
  }
}

/** A cancel that is refused too is not helped by another one. */
function isOurs({ attempts }: Tracked): boolean {
  const newest = attempts.at(-1);
  return newest !== undefined && newest.kind !== "cancel" && newest.kind !== "placeholder" && newest.foreign !== true;
}

async function cancel(
  ports: HolePorts,
  context: ChainContext,
  { lane, tx, reason }: { readonly lane: OwnedLane; readonly tx: Tracked; readonly reason: string },
): Promise<void> {
  const decision = { actor: "policy", audit: { policy: "heal", action: "CANCEL" } };
  await changeTracked(ports, context, { lane, tx, change: { kind: "cancel", fees: {}, reason, decision } });
}
