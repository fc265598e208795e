/**
 * Stage 2, before the database: what the chain's mined count says about the next nonce.
 *
 * next = max(chain count, cursor), and a max is a ratchet: one lying answer would become a permanent hole. So a count
 * above the cursor is proved before it moves anything: read again a poll interval later (the lower of the two counts),
 * and agreed to by another endpoint where there is one. Creates of the lane wait for that, at most three intervals.
 *
 * Reads: the chain's count, twice, with no database transaction open. Writes: nothing. A crash here has consumed nothing.
 */
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
  readonly chainCount: number;
  readonly proved: boolean;
}

const PROOF_INTERVALS = 3;
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
  try {
    const count = await context.chain.transactionCount(lane.lane.signer, "latest");
    const mined = count > (lane.cursor ?? 0) ? await prove(ports, { context, lane }, count) : count;
    const proven =
      context.settings.nonceChainQuery === "pending" ? await provePending(ports, { context, lane }, mined) : mined;
    lane.nonceCheckedAtMs = startedMs;
    lane.provenCount = proven;
    return aboveCursor(lane);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    // The database has a cursor: the chain being away stops nobody. A new lane has nothing to go by.
    if (lane.cursor !== null) return aboveCursor(lane);
    throw unavailable("the chain does not answer, and this signer's nonce is not known yet", error);
  }
}

async function prove(
  ports: NonceFloorPorts,
  { context, lane }: { readonly context: ChainContext; readonly lane: OwnedLane },
  first: number,
): Promise<number> {
  const { chain, settings } = context;
  const startedMs = ports.clock.monotonicMs();
  report(ports.telemetry, lane, { chainCount: first, proved: false });
  let claim = first;
  for (;;) {
    await ports.clock.sleep(settings.pollIntervalMs);
    const again = await chain.transactionCount(lane.lane.signer, "latest");
    const lower = Math.min(claim, again);
    if (lower <= (lane.cursor ?? 0)) return lower;
    const elsewhere = await chain.transactionCountElsewhere(lane.lane.signer, context.follower.head?.number ?? 0);
    if (again >= claim && (elsewhere === null || elsewhere >= lower)) {
      report(ports.telemetry, lane, { chainCount: lower, proved: true });
      return lower;
    }
    claim = again;
    if (ports.clock.monotonicMs() - startedMs >= PROOF_INTERVALS * settings.pollIntervalMs) {
      throw unavailable("the chain's nonce for this signer is above ours and endpoints do not agree on it yet");
    }
  }
}

/**
 * For keys that other systems use too: what waits in the pool beyond our cursor is stepped over, once every one of those
 * transactions has been found there and none is ours. What cannot be found is reported, and not believed.
 */
async function provePending(
  ports: NonceFloorPorts,
  { context, lane }: { readonly context: ChainContext; readonly lane: OwnedLane },
  mined: number,
): Promise<number> {
  const { chain, settings, hashes } = context;
  const from = Math.max(mined, lane.cursor ?? 0);
  const first = await chain.transactionCount(lane.lane.signer, "pending");
  if (first <= from) return mined;
  report(ports.telemetry, lane, { chainCount: first, proved: false });
  await ports.clock.sleep(settings.pollIntervalMs);
  const again = Math.min(first, await chain.transactionCount(lane.lane.signer, "pending"));
  const claimed = Math.min(Math.max(0, again - from), POOLED_AT_ONCE);
  const nonces = Array.from({ length: claimed }, (_, index) => from + index);
  const pooled = await chain.pooled(lane.lane.signer, nonces);
  const foreign = pooled?.findIndex((hash) => hash === null || hashes.has(hash)) ?? 0;
  const proven = from + (foreign === -1 ? nonces.length : foreign);
  if (proven === from) return mined;
  report(ports.telemetry, lane, { chainCount: proven, proved: true });
  return proven;
}

function report(telemetry: Telemetry, lane: OwnedLane, drift: Drift): void {
  const { chainCount, proved } = drift;
  telemetry.emit({ type: "nonce.drift", lane: lane.lane, cursor: lane.cursor, chainCount, proved });
  if (lane.cursor === null) return;
  telemetry.emit({
    type: "alert",
    severity: "WARNING",
    code: "NONCE_DRIFT",
    message: `the chain counts ${chainCount} transactions of ${lane.lane.signer}, we gave out ${lane.cursor}${proved ? "; aligned" : "; waiting for proof"}`,
    lane: lane.lane,
  });
}
