/**
 * The loop that maintains a lane's sent transactions. If a node accepted a transaction but it is not mined a resubmit
 * interval later, it is resent unchanged, or signed again at a higher price. The lane's lowest open transaction (its
 * head) comes first, because all others wait for it. Only transactions that the chain could mine next are repriced. A
 * head that is not mined in time is reported as STUCK. If two endpoints differ about the fee market, transactions that
 * new blocks left out are repriced sooner.
 *
 * After a takeover, ages come from the database, so that waiting times do not start anew.
 */
import { isTaken } from "../../domain/chain/answers.ts";
import { blockReported, type HeadOfLine, headSeen } from "../../domain/pace/lane-pace.ts";
import { awaitsVerdict, judged, lookWanted } from "../../domain/pace/transaction-pace.ts";
import { unlessSilent } from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { mayStick, reasonOf, stick } from "../detours/another-attempt.ts";
import { cancelExpired } from "../detours/expiry.ts";
import { tendHoles } from "../detours/holes.ts";
import { isPassed, lowerGas, repriceIfBelow } from "../detours/reprice.ts";
import { inTurn, type Working } from "../lane/activity.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { commitPlanned, hold, plan } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened, type Tracked } from "../lane/tracked.ts";

/** All maintenance of a lane: its sent transactions, and its holes. */
export function tendLane(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  return inTurn(
    () => cancelExpired(ports, context, lane),
    () => tend(ports, context, lane),
    () => climb(ports, context, lane),
    () => lowerGas(ports, context, lane),
    () => tendHoles(ports, context, lane),
  );
}

/**
 * Minimum time in ms that a new owner observes a lane's lowest open transaction before it reports it as stuck, if no
 * resubmit interval is configured.
 */
const LEAST_LOOK_MS = 60_000;

export function tend(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  if (lane.held) return null;
  const head = watchHead(ports, lane);
  if (head === null) return null;
  const due = lane.toJudge(ports.clock.monotonicMs());
  if (due.length === 0) return judgeHead(ports, context, lane, head);
  return judgeAll(ports, context, lane, due).then(async () => {
    // Check the lane's lowest open transaction again: if it was repaired meanwhile, its stuck timeout starts anew.
    const now = watchHead(ports, lane);
    if (now?.nonce === head.nonce) await judgeHead(ports, context, lane, now);
  });
}

/**
 * Records which transaction is the lane's lowest open one (its head), and since when: a new head gets the full stuck
 * timeout.
 */
function watchHead({ clock }: LanePorts, lane: OwnedLane): HeadOfLine | null {
  const tx = lane.unmined.get(lane.headOfLine() ?? -1);
  // If the lane's lowest open transaction was on hold or STUCK and is released, it gets the full stuck timeout again.
  const stuck = tx?.status.state === "STUCK" || tx?.held === true;
  const seen = tx && { nonce: tx.nonce, stuck, ageMs: ageBefore(clock, tx), sends: tx.submitAttempts };
  happened(lane, headSeen, seen ?? null, clock.monotonicMs());
  return lane.pace.head.kind === "at" ? lane.pace.head : null;
}

/** Age of the transaction since its first send, by the database's time. */
function ageBefore(clock: Clock, { firstSentAt }: Tracked) {
  return firstSentAt === null ? 0 : Math.max(0, clock.now().getTime() - firstSentAt.getTime());
}

async function judgeAll(ports: LanePorts, context: ChainContext, lane: OwnedLane, due: readonly Tracked[]) {
  await markStale(ports, lane, due);
  const isRepriced = context.settings.repricing !== null;
  // Nonces that the chain could mine next; empty if the transaction count is unknown.
  const executable = isRepriced ? await lane.term.during(unlessSilent(executableOf(context, lane), NONE)) : NONE;
  for (const tx of due) {
    if (tx.receipt !== null || tx.pace.inHand) continue;
    const result = executable.has(tx.nonce) ? await repriceIfBelow({ ports, context, lane, tx }) : "kept";
    // If a transaction was not signed again, its current bytes are resent at once, after a new claim (the stored right
    // to send) was committed.
    if (result !== "signed" && !tx.pace.inHand) happened(tx, judged);
  }
  lane.broadcasting?.kick();
}

/**
 * Reprices early while two endpoints differ about the fee market. Transactions first pay the lower market's price,
 * which may be false. So transactions that new blocks left out do not wait for the resubmit interval. If the endpoints
 * agree, nothing is signed or sent here.
 */
function climb(ports: LanePorts, context: ChainContext, lane: OwnedLane) {
  if (context.chain.endpoints < 2 || context.settings.repricing === null || lane.held) return null;
  const nowMs = ports.clock.monotonicMs();
  const passed = [...lane.unmined.values()].filter((tx) => mayClimb(tx) && isPassed(context, tx, nowMs));
  return passed.length === 0 ? null : climbEach(ports, context, lane, passed);
}

function mayClimb({ receipt, held, pace }: Tracked) {
  return receipt === null && !held && !pace.inHand && pace.look.kind !== "owed" && awaitsVerdict(pace);
}

async function climbEach(ports: LanePorts, context: ChainContext, lane: OwnedLane, passed: readonly Tracked[]) {
  const market = await lane.term.during(unlessSilent(context.feeMarket(), null));
  if (market?.dearer === undefined) return;
  const executable = await lane.term.during(unlessSilent(executableOf(context, lane), NONE));
  for (const tx of passed) {
    if (executable.has(tx.nonce) && mayClimb(tx)) await repriceIfBelow({ ports, context, lane, tx });
  }
  lane.broadcasting?.kick();
}

const NONE: ReadonlySet<number> = new Set();

/**
 * The nonces that the chain could mine next: our unmined transactions at consecutive nonces, from the chain's mined
 * count on.
 */
async function executableOf({ counts, settings }: ChainContext, lane: OwnedLane): Promise<ReadonlySet<number>> {
  const nonces = new Set<number>();
  let { count: next } = await counts.mined(lane.lane.signer, { atMostMs: settings.pollIntervalMs });
  // Skip the transactions that were seen mined since the count was requested.
  while (lane.mined.has(next)) next++;
  for (; lane.unmined.has(next); next++) nonces.add(next);
  return nonces;
}

/** Marks transactions as stale that a node accepted but no block included in time. */
async function markStale(ports: LanePorts, lane: OwnedLane, due: readonly Tracked[]) {
  const stale = due.filter(
    ({ status, pace: { answer }, receipt }) =>
      receipt === null && status.subState === "BROADCAST" && answer !== null && isTaken(answer),
  );
  const { head: now } = lane.pace;
  const head = stale.find(({ nonce }) => now.kind === "at" && nonce === now.nonce);
  if (head !== undefined) reportBlocked(ports, lane, head);
  if (stale.length === 0) return;
  const reason = "no receipt within the resubmit interval";
  await commitPlanned(
    ports,
    lane,
    stale.map((tx) => plan(tx, "stale", { reason })),
  );
}

function reportBlocked({ telemetry }: LanePorts, lane: OwnedLane, { txId, nonce }: Tracked) {
  const behind = lane.pendingBehind(nonce);
  const { head } = lane.pace;
  if (head.kind !== "at" || head.blocks || behind === 0) return;
  happened(lane, blockReported);
  telemetry.emit({ type: "lane.blocked", lane: lane.lane, txId, nonce, behind });
}

function judgeHead(ports: LanePorts, { settings }: ChainContext, lane: OwnedLane, head: HeadOfLine): Working {
  const tx = lane.unmined.get(head.nonce);
  const nowMs = ports.clock.monotonicMs();
  const lookMs = Math.min(settings.resubmitIntervalMs ?? LEAST_LOOK_MS, settings.stuckAfterMs);
  const isResent = tx !== undefined && isResentOften(settings, head, tx);
  if (!isResent) tx?.facts.delete("RESENT_OFTEN");
  // A lowest open transaction that was resent often enough is reported at any age, but only if a recent check shows
  // that it is not mined.
  const ripeMs = isResent ? nowMs - lookMs : head.sinceMs + settings.stuckAfterMs;
  const dueMs = Math.max(ripeMs, head.seenMs + lookMs);
  if (tx === undefined || !mayStick(tx) || nowMs < dueMs) return null;
  // I7: while it is unknown whether the lane's lowest open transaction was mined, it is not reported as stuck. Its
  // receipt is looked up first.
  const { look } = tx.pace;
  if (look.kind !== "looked" || look.ms < dueMs) {
    happened(tx, lookWanted);
    return null;
  }
  if (isResent) {
    const text = `it was sent again ${tx.submitAttempts - head.sentBefore} times since a node took it, and no block has it`;
    hold(ports, lane, tx, { code: "RESENT_OFTEN", text });
  }
  return stick(ports, lane, tx, reasonOf(tx, nowMs - head.sinceMs));
}

/**
 * True if the lane's lowest open transaction was resent too often. A transaction that no node ever accepted waits for
 * something else (funds or an endpoint), so only its age counts.
 */
function isResentOften(
  { stuckAfterResubmits: most }: ChainContext["settings"],
  { sentBefore }: HeadOfLine,
  { acceptedOrdinal, submitAttempts }: Tracked,
) {
  return most > 0 && acceptedOrdinal !== null && submitAttempts - sentBefore >= most;
}
