/**
 * Stage 2: assigns nonces. Nothing else does.
 *
 * Reads: the chain's mined count if the last one is old, with no database transaction open. Writes, in one transaction
 * under the lane's lock: free nonces filled, the lane's next nonce (its cursor) advanced, transaction, payload,
 * history. Invariants: I3 (consecutive, never backwards), I5 (a repeat of a request id consumes nothing), I4 (answered
 * only once durable). A crash before the commit leaves nothing; after it, an ALLOCATED row that the lane's owner signs
 * in its turn.
 *
 * The nonce to assign is max(chain count, cursor). It never falls again, so one false count would leave a permanent
 * nonce gap. A count above the cursor must therefore be confirmed first: a poll interval later, more than half of the
 * endpoints that are up must report the same count or more (domain/chain/counts.ts). One endpoint suffices only if
 * there is no other. An endpoint that is up but behind is waited for. Creates of the lane wait for the confirmation, at
 * most three intervals, and then fail with 503. A new lane has no cursor: all endpoints are asked, and the highest
 * count is the one to be confirmed.
 */
import { countNotExceeded, countReached, highestCount, judgeCount } from "../../../domain/chain/counts.ts";
import { NO_DOUBT } from "../../../domain/chain/doubt.ts";
import { DatabaseSilent, unavailable } from "../../../domain/errors.ts";
import {
  batchFailed,
  claimJudged,
  claimUnproved,
  countClaimed,
  countCompared,
} from "../../../domain/pace/count-events.ts";
import { isLimited, type Policies } from "../../../domain/policy/policy.ts";
import { traceparentIn } from "../../../domain/text/trace-context.ts";
import { ChainUnavailable } from "../../../ports/chain.ts";
import { type Clock, within } from "../../../ports/clock.ts";
import {
  type AllocatedRecord,
  type AllocateResult,
  type NewTransaction,
  OutcomeUnknown,
  type Unfenced,
} from "../../../ports/lane-store.ts";
import type { Ports } from "../../../ports/ports.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { CountFact } from "../../chain/counts.ts";
import { type LaneWriterPorts, noteTime, reportMove } from "../../lane/lane-writer.ts";
import type { LimitPorts } from "../../lane/limits.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { TermOver } from "../../lane/term.ts";
import { happened } from "../../lane/tracked.ts";

/**
 * Allocates nonces; returns one result per item, in order. Throws `TermOver` if the lane was lost while the items
 * waited: nothing was consumed.
 */
export async function allocate(
  ports: LaneWriterPorts & LimitPorts,
  context: ChainContext,
  lane: OwnedLane,
  items: readonly NewTransaction[],
): Promise<readonly AllocateResult[]> {
  // While the database may have lost allocations of this lane (`heldByHistory`), the lane allocates no nonce. Existing
  // requests can still be found in the database.
  const floor = lane.heldByHistory ? null : await lane.term.during(nonceFloor(ports, context, lane), "allocate");
  const fill = lane.freeNonces();
  const filling = fill.length === 0 ? {} : { fill };
  const outcome = await write(lane, { kind: "allocate", floor, ...filling, items });
  await ports.failpoint("allocate.committed");
  const records = recordsOf(outcome.items, items, ports.limits?.policies ?? null);
  const recycled = recycle(ports, lane, outcome.items);
  // The rows were committed while this node owned the lane, so the creates are answered even if the lane was handed
  // over meanwhile. The next owner finds the rows.
  if (records.length > 0) {
    report(ports, lane, records, items);
    lane.term.begin(() => {
      queueUp(lane, records, recycled);
      for (const record of records) noteTime(lane, record, ports.clock);
    });
  }
  return outcome.items;
}

function queueUp(lane: OwnedLane, records: readonly AllocatedRecord[], recycled: ReadonlySet<number>) {
  for (const record of records) if (recycled.has(record.nonce)) lane.slipIn(record);
  lane.backlog.enqueue(records.filter(({ nonce }) => !recycled.has(nonce)));
  lane.signing?.kick();
}

async function write(lane: OwnedLane, write: Unfenced<"allocate">) {
  try {
    return await lane.term.write(write);
  } catch (error) {
    happened(lane, batchFailed);
    if (error instanceof OutcomeUnknown || error instanceof TermOver) throw error;
    throw new DatabaseSilent("nothing was accepted", error);
  }
}

/** Reports the free nonces that new transactions have filled. */
function recycle(ports: LaneWriterPorts, lane: OwnedLane, results: readonly AllocateResult[]) {
  const recycled = results.flatMap((result) =>
    result.result === "created" && result.recycled === true ? [result.nonce] : [],
  );
  if (recycled.length > 0) {
    ports.telemetry.emit({ type: "nonce.recycled", lane: lane.lane, count: recycled.length });
  }
  return new Set(recycled);
}

/** The in-memory records of the transactions that this allocation created; they wait to be signed. */
function recordsOf(results: readonly AllocateResult[], items: readonly NewTransaction[], policies: Policies | null) {
  const records: AllocatedRecord[] = [];
  results.forEach((result, index) => {
    if (result.result !== "created") return;
    const { txId, requestId, payload, gas, gasCost, lane, owner, ...more } = (items[index] as NewTransaction).intent;
    const { exactNonce, validUntil } = more;
    const bare = { txId, nonce: result.nonce, requestId, payload, gas, createdAt: result.createdAt };
    const pinned = exactNonce === undefined ? bare : { ...bare, pinned: true as const };
    const record = validUntil === undefined ? pinned : { ...pinned, validUntil };
    const isCounted = policies !== null && isLimited(policies, lane.signer, owner);
    records.push(isCounted ? { ...record, mostCost: payload.value + gasCost } : record);
  });
  return records;
}

function report(
  ports: LaneWriterPorts,
  lane: OwnedLane,
  records: readonly AllocatedRecord[],
  items: readonly NewTransaction[],
) {
  const traces = tracesOf(items);
  const first = records[0] as AllocatedRecord;
  ports.telemetry.emit({ type: "nonce.allocated", lane: lane.lane, first: first.nonce, count: records.length });
  for (const { txId, nonce } of records) {
    const state = { from: null, state: "ALLOCATED", subState: null, txHash: null } as const;
    const traceparent = traces.get(txId);
    const trace = traceparent === undefined ? {} : { traceparent };
    reportMove(ports, lane, { txId, nonce, event: "allocate", ...state, ...trace });
  }
}

function tracesOf(items: readonly NewTransaction[]) {
  const traces = new Map<string, string>();
  for (const { intent } of items) {
    const traceparent = intent.metadata === null ? null : traceparentIn(intent.metadata);
    if (traceparent !== null) traces.set(intent.txId, traceparent);
  }
  return traces;
}

type NonceFloorPorts = Pick<Ports, "clock" | "telemetry">;

interface Drift {
  /** The lane's next nonce. */
  readonly cursor: number;
  readonly chainCount: number;
  readonly proved: boolean;
  /** The first report of this count: which endpoint gave it, and at which block. */
  readonly by: CountFact;
}

const PROOF_INTERVALS = 3;
/**
 * Minimum time in ms to wait for an answer, however short the poll interval is: a node with a thousand lanes sends many
 * requests at once.
 */
const ANSWERED_WITHIN_MS = 1_000;
/**
 * Maximum number of transactions that are looked up in the pool at once: the count may be false, and no pool keeps so
 * many of one sender.
 */
const POOLED_AT_ONCE = 1_000;

/**
 * The chain's count if endpoints agree on it and it is above the lane's next nonce, else null. Throws UNAVAILABLE if a
 * new lane's count cannot be read.
 */
export async function nonceFloor(
  ports: NonceFloorPorts,
  context: ChainContext,
  lane: OwnedLane,
): Promise<number | null> {
  if (lane.pace.doubt !== NO_DOUBT) throw unavailable(`nothing is accepted for this signer: ${lane.pace.distrust}`);
  if (context.settings.nonceChainQuery === "off") return lane.cursor === null ? 0 : null;
  if (isFresh(ports.clock, context, lane)) return aboveCursor(lane);
  const { comparing } = lane.nonces;
  const after = lane.pace.counts.failures;
  const underWay = comparing.get(after);
  if (underWay !== undefined) return underWay;
  const deadlineMs = ports.clock.monotonicMs() + PROOF_INTERVALS * context.settings.pollIntervalMs;
  const begun = askAndProve({ ports, context, lane, deadlineMs }, after).finally(() => comparing.delete(after));
  comparing.set(after, begun);
  return begun;
}

function isFresh(clock: Clock, { settings }: ChainContext, { cursor, pace }: OwnedLane) {
  const { comparedAtMs } = pace.counts;
  return cursor !== null && comparedAtMs !== null && clock.monotonicMs() - comparedAtMs < settings.nonceStateTimeoutMs;
}

/**
 * A count that endpoints have confirmed stays in force even if the create that caused the check fails: later creates
 * must not get a nonce below it.
 */
function aboveCursor({ cursor, pace }: OwnedLane) {
  const { proven } = pace.counts;
  return cursor === null || proven > cursor ? proven : null;
}

interface Proof {
  readonly ports: NonceFloorPorts;
  readonly context: ChainContext;
  readonly lane: OwnedLane;
  /** Monotonic time in ms at which creates stop waiting for endpoints to confirm the count. */
  readonly deadlineMs: number;
}

/**
 * Reads the chain's transaction count and has it confirmed by the endpoints. `after`: number of batches that had failed
 * when the read began.
 */
async function askAndProve(work: Proof, after: number) {
  const { ports, context, lane } = work;
  const startedMs = ports.clock.monotonicMs();
  try {
    const first = lane.cursor === null ? null : await askMined(work);
    const mined = first === null ? await firstCount(work) : await proveMined(work, first);
    const proven = context.settings.nonceChainQuery === "pending" ? await provePending(work, mined) : mined;
    happened(lane, countCompared, { proven, askedAtMs: first?.askedAtMs ?? startedMs, after });
    if (lane.cursor === null) {
      ports.telemetry.emit({ type: "nonce.firstCount", lane: lane.lane, chainCount: proven });
    }
    return aboveCursor(lane);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) {
      happened(lane, claimUnproved, ports.clock.now());
      throw error;
    }
    // If the lane has a next nonce in the database, creates continue while the chain is unreachable. A new lane has no
    // nonce to start from.
    if (lane.cursor !== null) return aboveCursor(lane);
    throw unavailable("the chain does not answer, and this signer's nonce is not known yet", error);
  }
}

/**
 * Reads the mined count. A recent answer to another request is reused, unless the lane's comparison with the chain must
 * start over: then no cached count is valid.
 */
function askMined({ context: { counts, settings }, lane }: Proof) {
  const atMostMs = lane.pace.counts.comparedAtMs === null ? 0 : settings.nonceStateTimeoutMs;
  return counts.mined(lane.lane.signer, { atMostMs });
}

async function proveMined(work: Proof, first: CountFact) {
  const { count } = first;
  const cursor = work.lane.cursor ?? 0;
  if (count <= cursor) return count;
  reportDrift(work, { cursor, chainCount: count, proved: false, by: first });
  const proven = await prove(work, count);
  if (proven > cursor) reportDrift(work, { cursor, chainCount: proven, proved: true, by: first });
  return proven;
}

/**
 * The first count of a new lane. A count that is too low would do as much harm here as one that is too high: the nonces
 * above it are already used.
 */
async function firstCount(work: Proof) {
  for (;;) {
    // Answers from endpoints at any block height are accepted. If another program uses the signer and an answer is too
    // low, the comparison with other endpoints or a later count shows it.
    const answers = await everywhere(work, 0);
    const highest = highestCount(answers);
    if (highest === 0 && countNotExceeded(answers) !== 0) {
      await again(work);
      continue;
    }
    return highest === 0 ? 0 : prove(work, highest);
  }
}

async function prove(work: Proof, first: number) {
  const { context, lane } = work;
  await context.counts.nextPoll();
  for (let claim = first; ; ) {
    happened(lane, countClaimed, claim, context.follower.head?.number ?? 0);
    const { claim: met } = lane.pace.counts;
    const verdict = judgeCount(claim, await everywhere(work, met?.atBlock ?? 0));
    if (verdict.kind !== "open") happened(lane, claimJudged);
    if (verdict.kind === "proved") return claim;
    if (verdict.kind === "refuted") claim = verdict.count;
    if (claim <= (lane.cursor ?? 0)) return claim;
    await again(work);
  }
}

/**
 * Counts from all endpoints. An endpoint that hangs is waited for until the deadline, or a little longer if the request
 * starts just before it.
 */
async function everywhere({ ports: { clock }, context, lane, deadlineMs }: Proof, atBlock: number) {
  const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
  const ms = Math.max(ANSWERED_WITHIN_MS, leftMs + context.settings.pollIntervalMs);
  const late = () => {
    throw notProved();
  };
  return within(clock, context.counts.everywhere(lane.lane.signer, atBlock), { ms, late });
}

async function again({ ports, context, deadlineMs }: Proof) {
  if (ports.clock.monotonicMs() >= deadlineMs) throw notProved();
  await context.counts.nextPoll();
}

function notProved() {
  return unavailable(
    "the chain reports a higher nonce for this signer than the database, but its endpoints do not agree on it yet; no nonce was used",
  );
}

/**
 * For keys that other systems use, too. Skips nonces of pending transactions from our next nonce on, up to the first
 * that is not found in the pool or is ours. Pending transactions above our next nonce are reported even if they are not
 * skipped. Pools differ, and an endpoint that invents transactions would cause a permanent nonce gap: so at most as
 * many are skipped as more than half of the endpoints count. Skipping too few costs at most a nonce that the other
 * program uses first.
 */
async function provePending(work: Proof, mined: number) {
  const { context, lane } = work;
  const { chain, counts, hashes } = context;
  const from = Math.max(mined, lane.cursor ?? 0);
  const first = await counts.pending(lane.lane.signer, { atMostMs: 0 });
  if (first.count <= from) return mined;
  reportDrift(work, { cursor: from, chainCount: first.count, proved: false, by: first });
  await counts.nextPoll();
  const counted = countReached(await counts.everywhere(lane.lane.signer, 0, "pending"));
  const again = Math.min(first.count, counted);
  const claimed = Math.min(Math.max(0, again - from), POOLED_AT_ONCE);
  const nonces = Array.from({ length: claimed }, (_, index) => from + index);
  const pooled = await chain.pooled(lane.lane.signer, nonces);
  const foreign = pooled?.findIndex((hash) => hash === null || hashes.has(hash)) ?? 0;
  const proven = from + (foreign === -1 ? nonces.length : foreign);
  if (proven === from) return mined;
  reportDrift(work, { cursor: from, chainCount: proven, proved: true, by: first });
  return proven;
}

function reportDrift({ ports: { telemetry }, lane: owned }: Proof, { cursor, chainCount, proved, by }: Drift) {
  const { lane, cursor: given } = owned;
  telemetry.emit({ type: "nonce.drift", lane, cursor, chainCount, proved });
  // Other programs' pending transactions on a new lane are reported without an alert.
  if (given === null) return;
  const outcome = proved ? "aligned" : `${by.endpoint} says so at block ${by.atBlock}; waiting for proof`;
  const message = `the chain counts ${chainCount} transactions of ${lane.signer}, we gave out ${cursor}; ${outcome}`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "NONCE_DRIFT", message, lane });
}
