/**
 * Stage 2, before the database: what the chain's mined count says about the next nonce.
 *
 * next = max(chain count, cursor), and a max is a ratchet: one lying answer would become a permanent hole. So a count
 * above the cursor is proved before it moves anything: a poll interval later, more than half of the endpoints that are up
 * must count as many (domain/counts.ts). One that is up but behind is waited for: only where there is no other does one
 * endpoint's word suffice. Creates of the lane wait for that, at most three intervals, and then fail with 503. A new lane
 * has no cursor to go by: every endpoint is asked, and the highest count that anybody gives is the one to be proved.
 *
 * Reads: the chain's count, twice, with no database transaction open. Writes: nothing. A crash here has consumed nothing.
 */
import { type CountAnswer, countNotExceeded, countReached, highestCount, judgeCount } from "../../../domain/counts.ts";
import { NO_DOUBT } from "../../../domain/doubt.ts";
import { unavailable } from "../../../domain/errors.ts";
import { ChainUnavailable } from "../../../ports/chain.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Telemetry } from "../../../ports/telemetry.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";

export interface NonceFloorPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

interface Drift {
  /** The nonce that would be given next. */
  readonly cursor: number;
  readonly chainCount: number;
  readonly proved: boolean;
}

const PROOF_INTERVALS = 3;
/** An answer takes its time, however short the poll interval is: a node with a thousand lanes asks for many at once. */
const ANSWERED_WITHIN_MS = 1_000;
/** What is looked for in the pool at once: a count is anybody's claim, and no pool keeps so many of one sender. */
const POOLED_AT_ONCE = 1_000;
const proving = new WeakMap<OwnedLane, Promise<number | null>>();

/** The proven count while it is above the cursor, else null. Throws UNAVAILABLE where a new lane's count cannot be had. */
export async function nonceFloor(
  ports: NonceFloorPorts,
  context: ChainContext,
  lane: OwnedLane,
): Promise<number | null> {
  if (lane.doubt !== NO_DOUBT) throw unavailable(`nothing is accepted for this signer: ${lane.distrust?.reason}`);
  if (context.settings.nonceChainQuery === "off") return lane.cursor === null ? 0 : null;
  if (isFresh(ports.clock, context, lane)) return aboveCursor(lane);
  const underWay = proving.get(lane);
  if (underWay !== undefined) return underWay;
  const proof = askAndProve(ports, context, lane).finally(() => proving.delete(lane));
  proving.set(lane, proof);
  return proof;
}

function isFresh(clock: Clock, context: ChainContext, lane: OwnedLane): boolean {
  if (lane.cursor === null || lane.nonceCheckedAtMs === null) return false;
  return clock.monotonicMs() - lane.nonceCheckedAtMs < context.settings.nonceStateTimeoutMs;
}

/** The create that brought the proof may still fail: whoever comes after it must not get a nonce below what was proved. */
function aboveCursor({ cursor, provenCount }: OwnedLane): number | null {
  return cursor === null || provenCount > cursor ? provenCount : null;
}

async function askAndProve(ports: NonceFloorPorts, context: ChainContext, lane: OwnedLane): Promise<number | null> {
  const startedMs = ports.clock.monotonicMs();
  const work = { context, lane, deadlineMs: startedMs + PROOF_INTERVALS * context.settings.pollIntervalMs };
  try {
    const mined = lane.cursor === null ? await firstCount(ports, work) : await minedCount(ports, work, lane.cursor);
    const proven = context.settings.nonceChainQuery === "pending" ? await provePending(ports, work, mined) : mined;
    lane.nonceCheckedAtMs = startedMs;
    lane.provenCount = proven;
    if (lane.cursor === null) {
      ports.telemetry.emit({ type: "nonce.firstCount", lane: lane.lane, chainCount: proven });
    }
    return aboveCursor(lane);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    // The database has a cursor: the chain being away stops nobody. A new lane has nothing to go by.
    if (lane.cursor !== null) return aboveCursor(lane);
    throw unavailable("the chain does not answer, and this signer's nonce is not known yet", error);
  }
}

interface Proof {
  readonly context: ChainContext;
  readonly lane: OwnedLane;
  /** Monotonic: creates wait no longer. */
  readonly deadlineMs: number;
}

async function minedCount(ports: NonceFloorPorts, work: Proof, cursor: number): Promise<number> {
  const count = await work.context.chain.transactionCount(work.lane.lane.signer, "latest");
  if (count <= cursor) return count;
  reportDrift(ports.telemetry, work.lane, { cursor, chainCount: count, proved: false });
  const proven = await prove(ports, work, count);
  if (proven > cursor) reportDrift(ports.telemetry, work.lane, { cursor, chainCount: proven, proved: true });
  return proven;
}

/** An endpoint that counts too few would do as much harm here as one that counts too many: what it leaves out was used. */
async function firstCount(ports: NonceFloorPorts, work: Proof): Promise<number> {
  for (;;) {
    // At any height: a signer that somebody uses just now shows in the count that is proved next, or in a later look.
    const answers = await everywhere(ports.clock, work, 0);
    const highest = highestCount(answers);
    if (highest === 0 && countNotExceeded(answers) !== 0) {
      await again(ports.clock, work);
      continue;
    }
    return highest === 0 ? 0 : prove(ports, work, highest);
  }
}

async function prove(ports: NonceFloorPorts, work: Proof, first: number): Promise<number> {
  const { context, lane } = work;
  await ports.clock.sleep(context.settings.pollIntervalMs);
  for (let claim = first; ; ) {
    const verdict = judgeCount(claim, await everywhere(ports.clock, work, claimedAt(context, lane, claim)));
    if (verdict.kind !== "open") lane.countClaim = null;
    if (verdict.kind === "proved") return claim;
    if (verdict.kind === "refuted") claim = verdict.count;
    if (claim <= (lane.cursor ?? 0)) return claim;
    await again(ports.clock, work);
  }
}

/**
 * The block at which the claim was first met. It stays while the same is claimed, over several creates: else an endpoint
 * that is always a block late would be behind for ever, and could never contradict.
 */
function claimedAt({ follower }: ChainContext, lane: OwnedLane, count: number): number {
  if (lane.countClaim?.count !== count) lane.countClaim = { count, atBlock: follower.head?.number ?? 0 };
  return lane.countClaim.atBlock;
}

/** An endpoint that hangs is waited for until the deadline, and one that is asked at the last moment a little longer. */
async function everywhere(clock: Clock, work: Proof, atBlock: number): Promise<readonly CountAnswer[]> {
  const { context, lane, deadlineMs } = work;
  const answered = new AbortController();
  const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
  const patienceMs = Math.max(ANSWERED_WITHIN_MS, leftMs + context.settings.pollIntervalMs);
  const late = clock.sleep(patienceMs, answered.signal).then(
    () => {
      throw notProved();
    },
    () => [],
  );
  const answers = context.chain.transactionCountEverywhere(lane.lane.signer, atBlock);
  return Promise.race([answers, late]).finally(() => answered.abort());
}

async function again(clock: Clock, { context, deadlineMs }: Proof): Promise<void> {
  if (clock.monotonicMs() >= deadlineMs) throw notProved();
  await clock.sleep(context.settings.pollIntervalMs);
}

function notProved(): Error {
  return unavailable(
    "the chain's nonce for this signer is above ours, and its endpoints do not agree on it yet; nothing was consumed",
  );
}

/**
 * For keys that other systems use too: what waits in the pool beyond our cursor is stepped over, once every one of those
 * transactions has been found there and none is ours. What cannot be found is reported, and not believed. Pools differ,
 * and an endpoint that makes transactions up would leave a hole for good: no more are believed than more than half of the
 * endpoints count. What is not believed costs at most a nonce that somebody else is faster to use.
 */
async function provePending(
  ports: NonceFloorPorts,
  { context, lane }: Omit<Proof, "deadlineMs">,
  mined: number,
): Promise<number> {
  const { chain, settings, hashes } = context;
  const from = Math.max(mined, lane.cursor ?? 0);
  const first = await chain.transactionCount(lane.lane.signer, "pending");
  if (first <= from) return mined;
  reportDrift(ports.telemetry, lane, { cursor: from, chainCount: first, proved: false });
  await ports.clock.sleep(settings.pollIntervalMs);
  const counted = countReached(await chain.transactionCountEverywhere(lane.lane.signer, 0, "pending"));
  const again = Math.min(first, counted);
  const claimed = Math.min(Math.max(0, again - from), POOLED_AT_ONCE);
  const nonces = Array.from({ length: claimed }, (_, index) => from + index);
  const pooled = await chain.pooled(lane.lane.signer, nonces);
  const foreign = pooled?.findIndex((hash) => hash === null || hashes.has(hash)) ?? 0;
  const proven = from + (foreign === -1 ? nonces.length : foreign);
  if (proven === from) return mined;
  reportDrift(ports.telemetry, lane, { cursor: from, chainCount: proven, proved: true });
  return proven;
}

function reportDrift(telemetry: Telemetry, { lane, cursor: given }: OwnedLane, drift: Drift): void {
  const { cursor, chainCount, proved } = drift;
  telemetry.emit({ type: "nonce.drift", lane, cursor, chainCount, proved });
  // What others have in the pool when a lane begins is told, and wakes nobody.
  if (given === null) return;
  const message = `the chain counts ${chainCount} transactions of ${lane.signer}, we gave out ${cursor}; ${proved ? "aligned" : "waiting for proof"}`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "NONCE_DRIFT", message, lane });
}
