/**
 * Work that follows a change of the chain's newest block. The newest block is polled at its own interval, and each
 * change starts a pass over the lanes. A pass works on one immutable view of the chain: withdraw transactions that left
 * the chain, match receipts, look for stale ones, decide finality. A slow pass does not delay the polls: the buffer
 * between them is bounded.
 *
 * If a node accepts no future nonces, a lane can send its next transaction only after the next poll. So after such a
 * send up to four extra polls follow, at pauses that double. An idle chain gets no extra polls.
 */

import type { BlockWindow } from "../../domain/chain/block-window.ts";
import { isFinal } from "../../domain/chain/finality.ts";
import { shardOf } from "../../domain/lane.ts";
import { chainLookOwed, comparisonSet } from "../../domain/pace/lane-pace.ts";
import { lookOwed } from "../../domain/pace/transaction-pace.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { type Block, ChainUnavailable } from "../../ports/chain.ts";
import { fewAtATime } from "../../ports/clock.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { HeadChange } from "../chain/head-follower.ts";
import { trustedLanes } from "../chain/trust.ts";
import type { WorkPorts } from "../chain/work-ports.ts";
import { reconcile } from "../detours/reconcile.ts";
import { Activity, inTurn, type Working } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { quietly, TermOver } from "../lane/term.ts";
import { happened } from "../lane/tracked.ts";
import { silent } from "../queries/silent.ts";
import { searchGrayZone } from "../stages/4-broadcast/note-answer.ts";
import { noticeExternalUse, receiptsOfBlocks, staleReceipts } from "../stages/5-receipt/receipt.ts";

import {
  decideFinal,
  type FinalityPass,
  hasWatched,
  openPass,
  recordConfirmations,
  withdrawOrphaned,
} from "../stages/6-finality/finality.ts";

/** Number of parts into which the reconciliation interval is divided; each lane is reconciled in one of them. */
const SPREAD = 64;
/**
 * Number of checks for due reconciliations per part of the interval. Not every new block triggers a check, because
 * there may be twenty blocks a second.
 */
const LOOKS_PER_PART = 4;
/** The first early poll comes after this fraction of the poll interval. */
const SOONEST_LOOK = 1 / 16;
const RECONCILED_AT_ONCE = 100;

export class ChainLoop {
  readonly context;
  private readonly ports;
  private readonly stopping = new AbortController();
  private readonly subscription;
  private readonly pass;
  private readonly reconciling;
  private following: Promise<void> | null = null;
  private unfetched: readonly Block[] = [];
  /** Monotonic time of the next check for lanes that are due to be compared with the chain. */
  private reconcileLookAtMs = 0;
  /** Fraction of the poll interval after which the chain is polled next; 1 means after a whole interval, as usual. */
  private share = 1;
  private waking = new AbortController();
  /** True if a hint of a new block has arrived and no poll has followed yet. */
  private hinted = false;
  private hintAgainAtMs = 0;

  constructor(ports: WorkPorts, context: ChainContext) {
    this.ports = ports;
    this.context = context;
    this.subscription = context.follower.subscribe();
    context.lookSoon = () => this.lookSoon();
    context.chain.onNewHead?.(() => this.lookNow());
    const failed = (error: unknown) => this.reportFailure(error);
    this.pass = new Activity(() => this.runPass(), failed);
    this.reconciling = new Activity(() => this.reconcileDue(), failed);
  }

  /** Number of blocks whose receipts are not fetched yet. */
  get backlog(): number {
    return this.unfetched.length;
  }

  start(): void {
    this.following = this.follow();
  }

  /**
   * Processes the lanes without waiting for a new block, because a lane was resumed or a response requires a receipt
   * check.
   */
  kick(): void {
    this.pass.kick();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.waking.abort();
    await this.following;
    await this.pass.settled();
    await this.reconciling.settled();
  }

  private async follow() {
    while (!this.stopping.signal.aborted) {
      await this.look();
      this.pass.kick();
      this.reconciling.kick();
      await this.untilNextPoll();
    }
  }

  /**
   * Waits until the next regular poll for a new block. Polls earlier if requested; such an early poll starts a pass
   * over the lanes only if the newest block changed.
   */
  private async untilNextPoll() {
    const { clock } = this.ports;
    const { pollIntervalMs } = this.context.settings;
    const pollAtMs = clock.monotonicMs() + pollIntervalMs;
    while (!this.stopping.signal.aborted) {
      const leftMs = pollAtMs - clock.monotonicMs();
      if (leftMs <= 0) return;
      const isEarly = this.share * pollIntervalMs < leftMs;
      this.waking = new AbortController();
      await clock.sleep(isEarly ? this.share * pollIntervalMs : leftMs, this.waking.signal).catch(() => undefined);
      if (!this.hinted && (!isEarly || this.waking.signal.aborted)) continue;
      if (!this.hinted) this.share = Math.min(1, 2 * this.share);
      this.hinted = false;
      if (await this.look()) this.pass.kick();
    }
  }

  /** Polls at once on a hint, but only once per part of the interval: hints may be false. */
  private lookNow() {
    const nowMs = this.ports.clock.monotonicMs();
    if (nowMs < this.hintAgainAtMs) return;
    this.hintAgainAtMs = nowMs + SOONEST_LOOK * this.context.settings.pollIntervalMs;
    this.hinted = true;
    this.waking.abort();
  }

  private lookSoon() {
    this.share = SOONEST_LOOK;
    this.waking.abort();
  }

  /** Polls the chain's newest block. True if the canonical chain changed. */
  private async look() {
    const { chainId } = this.context.chain;
    try {
      const isAwaited = () => [...this.context.onChain].some((lane) => lane.isOnChain);
      const changed = await this.context.follower.advance(isAwaited);
      this.context.noteHead();
      if (!this.context.reachable) this.ports.telemetry.emit({ type: "chain.reachable", chainId });
      this.context.reachable = true;
      this.context.unreachableSince = null;
      return changed;
    } catch (error) {
      const reason = messageOf(error);
      if (this.context.reachable) this.ports.telemetry.emit({ type: "chain.unreachable", chainId, reason });
      this.context.reachable = false;
      // After a failure the next endpoint may be another machine: nothing is sent before it has shown which chain it
      // serves.
      const isLost = !(error instanceof ChainUnavailable && error.limited);
      if (isLost) for (const lane of this.ports.lanesOf(chainId)) happened(lane, chainLookOwed);
      this.context.unreachableSince ??= this.ports.clock.now();
      return false;
    }
  }

  private async runPass() {
    const { context, ports } = this;
    if (context.follower.window.tip === null || this.stopping.signal.aborted) return;
    const all = ports.lanesOf(context.chain.chainId);
    await context.endingFailures(() => this.passOverTrusted(all));
  }

  /** Processes all lanes for which the chain's identity is certain. Returns false if it is uncertain for some lanes. */
  private async passOverTrusted(all: readonly OwnedLane[]) {
    const { context, ports } = this;
    const lanes = await trustedLanes(ports, context, all);
    try {
      await this.passOver(
        all,
        lanes.filter((lane) => lane.isOnChain),
      );
    } finally {
      // Wake the lanes even if the pass failed half-way: transactions that it found mined have freed places in the
      // in-flight window.
      await fewAtATime(
        ports.clock,
        lanes.filter((lane) => lane.hasWork),
        (lane) => lane.kick(),
      );
    }
    return lanes.length === all.length;
  }

  private async passOver(all: readonly OwnedLane[], lanes: readonly OwnedLane[]) {
    const { context, ports } = this;
    const { items: changes, gapPotential } = this.subscription.drain();
    if (gapPotential) oweEveryReceipt(all);
    if (changes.length > 0) context.forget();
    const { window } = context.follower;
    const shaken = lanes.filter((lane) => !standsOn(window, lane));
    const unsure = await this.forEachLane(shaken, (lane) => withdrawOrphaned(ports, context, lane));
    this.unfetched = await receiptsOfBlocks(ports, context, this.blocksToFetch(changes));
    await staleReceipts(ports, context, lanes);
    const sending = lanes.filter(({ unmined }) => unmined.size > 0);
    await this.forEachLane(sending, (lane) =>
      inTurn(
        () => noticeExternalUse(ports, context, lane),
        () => searchGrayZone(ports, context, lane),
      ),
    );
    // Stored for display only: no decision depends on these confirmations.
    await quietly(recordConfirmations(ports, context, lanes)).catch((error: unknown) => this.reportFailure(error));
    // For some lanes it is unknown which transactions a reorg removed. On those lanes nothing becomes final, and
    // settled transactions are still checked for reorgs.
    const sure = lanes.filter((lane) => !unsure.has(lane));
    const pass = await openPass(context, sure);
    const deciding = sure.filter((lane) => mayDecide(pass, lane));
    await this.forEachLane(deciding, (lane) => decideFinal(ports, pass, lane));
  }

  /**
   * Reconciles the lanes that are due. Lanes are spread over the interval, so that a node that acquired many lanes does
   * not request the values of all of them at once. Lanes of the same part of the interval are compared together, so
   * that the number of requests depends on the parts and not on the lanes.
   */
  private async reconcileDue() {
    const { context, ports } = this;
    const intervalMs = context.settings.reconciliationIntervalMs;
    if (intervalMs === null || !context.reachable) return;
    const nowMs = ports.clock.monotonicMs();
    if (nowMs < this.reconcileLookAtMs) return;
    this.reconcileLookAtMs = nowMs + intervalMs / (SPREAD * LOOKS_PER_PART);
    await this.readFirstBalances();
    const turnOf = (lane: OwnedLane) => turnAfter(nowMs, intervalMs, shardOf(lane.key, SPREAD));
    const due: OwnedLane[] = [];
    for (const lane of ports.lanesOf(context.chain.chainId)) {
      if (lane.pace.reconcileAtMs === null) happened(lane, comparisonSet, turnOf(lane));
      else if (nowMs >= lane.pace.reconcileAtMs) due.push(lane);
    }
    for (let from = 0; from < due.length && !this.stopping.signal.aborted; from += RECONCILED_AT_ONCE) {
      const lanes = due.slice(from, from + RECONCILED_AT_ONCE);
      for (const lane of lanes) happened(lane, comparisonSet, turnOf(lane));
      await reconcile(ports, context, lanes);
    }
  }

  /**
   * Reads balances that are not known yet, if an alert depends on them: the lane's turn may be minutes away, and each
   * takeover would begin that wait again. Some at a time, because a failover brings many lanes.
   */
  private async readFirstBalances() {
    const { context, ports } = this;
    if (context.settings.alertLowBalanceWei === null) return;
    const lanes = ports.lanesOf(context.chain.chainId);
    const unknown = lanes.filter(({ lane }) => !context.knownBalances.has(lane.signer)).slice(0, RECONCILED_AT_ONCE);
    await Promise.all(unknown.map(({ lane }) => silent(context.balance(lane.signer))));
  }

  /**
   * Blocks to fetch receipts for: the new ones first, then those for which fetching failed before. Only canonical ones
   * are returned.
   */
  private blocksToFetch(changes: readonly HeadChange[]): readonly Block[] {
    const added = changes.flatMap((change) => change.added);
    return [...added, ...this.unfetched].filter((block) => this.context.follower.window.contains(block));
  }

  /**
   * Runs the work for each lane independently; returns the lanes for which it failed. If the chain does not answer, no
   * lane is dropped: the work is repeated next time.
   */
  private async forEachLane(
    lanes: readonly OwnedLane[],
    work: (lane: OwnedLane) => Working,
  ): Promise<ReadonlySet<OwnedLane>> {
    const failed = new Set<OwnedLane>();
    const fail = (lane: OwnedLane, error: unknown) => {
      failed.add(lane);
      if (!(error instanceof ChainUnavailable || error instanceof TermOver)) lane.term.readAgain(String(error));
    };
    const underWay: Promise<void>[] = [];
    await fewAtATime(this.ports.clock, lanes, (lane) => {
      try {
        const working = lane.term.begin(() => work(lane));
        if (working !== null) underWay.push(working.catch((error: unknown) => fail(lane, error)));
      } catch (error) {
        fail(lane, error);
      }
    });
    if (underWay.length > 0) await Promise.all(underWay);
    return failed;
  }

  private reportFailure(error: unknown) {
    if (error instanceof ChainUnavailable) return;
    this.context.passFailed(`a pass over chain ${this.context.chain.chainId} failed: ${String(error)}`);
  }
}

/** Number of blocks of all chains whose receipts are not fetched yet. */
export function backlogOf(loops: readonly ChainLoop[]): number {
  return loops.reduce((sum, { backlog }) => sum + backlog, 0);
}

/**
 * Next time at which the lanes of one part of the reconciliation interval are due. It depends only on the clock, so it
 * is the same for all lanes of the part, whenever each was acquired.
 */
function turnAfter(nowMs: number, intervalMs: number, part: number) {
  const begunMs = nowMs - (nowMs % intervalMs);
  const turnMs = begunMs + Math.ceil((intervalMs * part) / SPREAD);
  return turnMs > nowMs ? turnMs : turnMs + intervalMs;
}

/**
 * True if every block that contains a mined transaction of the lane, or a settled one still checked for reorgs, is in
 * the window of canonical blocks.
 */
function standsOn(window: BlockWindow, { mined, watched }: OwnedLane) {
  for (const { receipt } of mined.values()) {
    if (receipt === null || window.hashAt(receipt.blockNumber) !== receipt.blockHash) return false;
  }
  for (const [hash, number] of watched) if (window.hashAt(number) !== hash) return false;
  return true;
}

/** True if a transaction of the lane may be final on this view of the chain, or may no longer need the reorg check. */
function mayDecide({ context: { settings }, view, watchEnds }: FinalityPass, lane: OwnedLane) {
  for (const { receipt } of lane.mined.values()) if (isFinal(receipt?.blockNumber ?? -1, settings, view)) return true;
  return watchEnds >= 0 && hasWatched(lane, watchEnds);
}

/** Called if blocks may have been missed: every transaction in flight must be looked up by hash before it is resent. */
function oweEveryReceipt(lanes: readonly OwnedLane[]) {
  for (const lane of lanes) {
    for (const tx of lane.unmined.values()) happened(tx, lookOwed);
  }
}
