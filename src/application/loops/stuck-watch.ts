/**
 * Checks every lane for stuck transactions. A lane has a problem if a transaction is too old (above all its lowest open
 * one), if too many are not mined, or if a payload was refused or signed too often. Raises an alert while the problem
 * lasts, and calls the hook for a decision.
 */

import { Growth } from "../../domain/pace/growth.ts";
import { pileSeen } from "../../domain/pace/lane-pace.ts";
import { RecentCount } from "../../domain/pace/recent-count.ts";
import { SYMPTOMS } from "../../domain/troubles/table.ts";
import { ether } from "../../domain/troubles/words.ts";
import type { Ports } from "../../ports/ports.ts";
import type { StuckTrigger } from "../../ports/stuck-hook.ts";
import type { Telemetry, TelemetryEvent } from "../../ports/telemetry.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { sideBySide } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened, type Tracked } from "../lane/tracked.ts";
import type { HookRunner } from "../operations/stuck-hook.ts";
import { StandingAlerts } from "../standing-alerts.ts";

interface StuckWatchPorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly hook: Pick<HookRunner, "isConfigured" | "ask">;
}

type Question = Parameters<HookRunner["ask"]>[0];

/** One measurement of a lane as a whole; `lasts` is true if its threshold is exceeded. */
interface Measure {
  readonly trigger: StuckTrigger;
  readonly code: (typeof SYMPTOMS)[number];
  readonly lasts: boolean;
  readonly message: string;
}

/**
 * Maximum number of simultaneous hook calls: a hook that hangs must not delay the other transactions for long, nor be
 * called for all lanes at once.
 */
const ASK_AT_ONCE = 8;

export class StuckWatch {
  private readonly ports;
  private asking: Promise<void> | null = null;

  constructor(ports: StuckWatchPorts) {
    this.ports = ports;
  }

  look(lanes: readonly OwnedLane[]): void {
    const restless = lanes.filter((lane) => lane.hasUnmined() || lane.pace.pileSaid || this.isAlerted(lane));
    const questions = restless.flatMap((lane) => this.lookAt(lane));
    if (this.asking !== null || questions.length === 0 || !this.ports.hook.isConfigured) return;
    this.asking = sideBySide(questions, ASK_AT_ONCE, (question) => this.ports.hook.ask(question)).finally(() => {
      this.asking = null;
    });
  }

  /** Resolves when no hook call is under way. */
  async settled(): Promise<void> {
    await this.asking;
  }

  private lookAt(lane: OwnedLane): readonly Question[] {
    const context = this.ports.chains.get(lane.lane.chainId);
    const head = lane.unmined.get(lane.headOfLine() ?? -1);
    if (context === undefined) return [];
    endPile(context, lane);
    const measures = this.measures(context, lane, head);
    const about = { lane: lane.lane, ...(head && { txId: head.txId }) };
    for (const { code, lasts, message } of measures) {
      const over = `${lane.lane.signer} is below the threshold again`;
      context.standing.judge({ code, message: lasts ? message : over, ...about }, lasts);
    }
    // An operator or the node has suspended the lane, which is a decision already: do not call the hook.
    if (lane.suspended) return [];
    const first = measures.find(({ lasts }) => lasts);
    // Do not call the hook for a lowest open transaction that an operator has put on hold: that is a decision already.
    const isAsked = head !== undefined && first !== undefined && !head.held;
    const ofHead = isAsked ? [{ lane, context, tx: head, trigger: first.trigger }] : [];
    return [...singles(lane, context), ...ofHead];
  }

  private measures({ settings }: ChainContext, lane: OwnedLane, head: Tracked | undefined): readonly Measure[] {
    const { clock } = this.ports;
    const { head: seen } = lane.pace;
    const headMs = seen.kind === "at" && seen.nonce === head?.nonce ? clock.monotonicMs() - seen.sinceMs : 0;
    const oldestAt = lane.oldestPendingAt();
    const oldestMs = oldestAt === null ? 0 : clock.now().getTime() - oldestAt.getTime();
    const depth = lane.unminedDepth();
    const [isOpen, isHeld] = [lane.hasUnmined(), head?.held === true];
    const mayBeOld = isOpen && !isHeld;
    return [
      {
        trigger: "headAge",
        code: "HEAD_OF_LINE_OLD",
        lasts: mayBeOld && headMs > settings.alertHeadAgeMs,
        message: `nonce ${head?.nonce} has been the head of its lane for ${seconds(headMs)}`,
      },
      {
        trigger: "oldestAge",
        code: "PENDING_OLD",
        lasts: mayBeOld && oldestMs > settings.alertOldestAgeMs,
        message: `the oldest transaction that is not final is ${seconds(oldestMs)} old`,
      },
      {
        trigger: "pendingDepth",
        code: "PENDING_DEEP",
        lasts: isOpen && depth > settings.alertPendingDepth,
        message: `${depth} transactions are not mined`,
      },
    ];
  }

  private isAlerted({ lane }: OwnedLane) {
    const standing = this.ports.chains.get(lane.chainId)?.standing;
    return SYMPTOMS.some((code) => standing?.has({ code, lane }) === true);
  }
}

/** Problems of single transactions, whether or not they are the lane's lowest open one. */
function singles(lane: OwnedLane, context: ChainContext): readonly Question[] {
  const { maxAttempts } = context.settings;
  return [...lane.unmined.values()].flatMap((tx): readonly Question[] => {
    if (tx.held) return [];
    if (tx.pace.answer === "rejected") return [{ lane, context, tx, trigger: "rejected" }];
    if (tx.facts.has("RESENT_OFTEN")) return [{ lane, context, tx, trigger: "resubmits" }];
    const isSpent = maxAttempts > 0 && tx.attempts.length >= maxAttempts;
    return isSpent ? [{ lane, context, tx, trigger: "maxAttempts" }] : [];
  });
}

/**
 * Ends the alert about too many reserved nonces. It is raised when a nonce is reserved, and ends here once enough
 * nonces were used, released or expired.
 */
function endPile({ settings, standing }: ChainContext, lane: OwnedLane) {
  const { reserved } = lane.nonces;
  if (!lane.pace.pileSaid || reserved > settings.alertReserved) return;
  happened(lane, pileSeen, false);
  standing.resolve(
    { code: "RESERVED_PILE_UP", lane: lane.lane },
    `${reserved} nonces of ${lane.lane.signer} are reserved`,
  );
}

function seconds(ms: number) {
  return `${Math.round(ms / 1_000)} s`;
}

/**
 * Raises alerts about the node as a whole: repeated fenced writes and repeated sends of one payload (both counted from
 * telemetry); blocks that arrive faster than their receipts are fetched; a chain without an answering endpoint or
 * without new blocks; a signer whose last known balance is low.
 */

const WINDOW_MS = 300_000;
/**
 * Number of fenced writes that raises an alert. A takeover fences one or two writes per lane; more means that a node
 * loses its lease repeatedly, or that two nodes both act.
 */
const FENCED_SURGE = 10;
/** Number of resends that raises an alert, if they are also a fifth of all sends. Fewer prove nothing. */
const RESUBMIT_SURGE = 50;
const RESUBMIT_SHARE = 0.2;
const STRETCH_MS = 60_000;
/** Number of blocks without fetched receipts that raises an alert; fewer are fetched quickly. */
const BACKLOG_OF_NOTE = 10;
/**
 * How long a chain may be unreachable before an alert: restarting an endpoint, or failing over to the next, takes less.
 */
const CHAIN_DOWN_MS = 10_000;

type WatchPorts = Pick<Ports, "clock" | "telemetry">;

type Chains = ReadonlyMap<number, ChainContext>;
type Held = { onChain(chainId: number): readonly OwnedLane[] };

export class NodeWatch {
  /** Counts events and passes them on; use it in place of the given telemetry. */
  readonly telemetry: Telemetry;
  private readonly clock;
  private readonly standing;
  private readonly fenced = new RecentCount(WINDOW_MS);
  private readonly sent = new RecentCount(WINDOW_MS);
  private readonly repeated = new RecentCount(WINDOW_MS);
  private readonly backlog = new Growth(STRETCH_MS);
  private readonly downSinceMs = new Map<number, number>();

  constructor({ clock, telemetry }: WatchPorts) {
    this.clock = clock;
    this.standing = new StandingAlerts(telemetry);
    this.telemetry = {
      emit: (event) => {
        this.count(event);
        telemetry.emit(event);
      },
    };
  }

  look(chains: Chains, lanes: Held, receiptBacklog: number): void {
    const nowMs = this.clock.monotonicMs();
    this.lookAtFenced(this.fenced.within(nowMs));
    this.lookAtRepeats(this.repeated.within(nowMs), this.sent.within(nowMs));
    this.backlog.see(nowMs, receiptBacklog);
    this.lookAtBacklog();
    for (const [chainId, context] of chains) {
      this.lookAtChain(context, nowMs);
      const owned = lanes.onChain(chainId);
      this.lookAtBlocks(context, owned);
      lookAtBalances(context, owned);
      if (context.standing.size === 0) continue;
      const held = new Set(owned.map(({ key }) => key));
      context.standing.leave((key) => held.has(key));
    }
  }

  private count(event: TelemetryEvent) {
    if (event.type === "lease.fenced") this.fenced.add(this.clock.monotonicMs());
    if (event.type !== "submit.answered") return;
    this.sent.add(this.clock.monotonicMs());
    if (!event.first) this.repeated.add(this.clock.monotonicMs());
  }

  private lookAtFenced(count: number) {
    const message = `${count} writes of this node came too late for their term in five minutes`;
    this.standing.judge({ code: "FENCED_SURGE", message }, count >= FENCED_SURGE, count < FENCED_SURGE / 2);
  }

  private lookAtRepeats(repeats: number, sends: number) {
    const message = `${repeats} of ${sends} submissions in five minutes were repeats`;
    const isSurge = repeats >= RESUBMIT_SURGE && repeats >= RESUBMIT_SHARE * sends;
    this.standing.judge({ code: "RESUBMIT_SURGE", message }, isSurge, repeats < RESUBMIT_SURGE / 2);
  }

  private lookAtBacklog() {
    const { grown, stopped } = this.backlog;
    const isGrown = grown !== null && grown.to >= BACKLOG_OF_NOTE;
    const message = isGrown
      ? `receipts come faster than they are read: ${grown.from} were owed at best, and ${grown.to} are five minutes later`
      : "the backlog of receipts no longer grows";
    this.standing.judge({ code: "RECEIPT_BACKLOG_GROWING", message }, isGrown, stopped);
  }

  private lookAtBlocks(context: ChainContext, owned: readonly OwnedLane[]) {
    const { chainId } = context.chain;
    const isStalled = context.isStalled(owned);
    const message = isStalled
      ? `chain ${chainId} answers, and no block has come after ${context.follower.head?.number} for many times as long as one takes`
      : `chain ${chainId} has new blocks again, or does not answer at all`;
    this.standing.judge({ code: "CHAIN_STALLED", message, chainId }, isStalled);
  }

  private lookAtChain({ chain: { chainId }, reachable }: ChainContext, nowMs: number) {
    const sinceMs = this.downSinceMs.get(chainId) ?? nowMs;
    if (reachable) this.downSinceMs.delete(chainId);
    else this.downSinceMs.set(chainId, sinceMs);
    const message = reachable
      ? `chain ${chainId} answers again`
      : `no endpoint of chain ${chainId} has answered for ${Math.round((nowMs - sinceMs) / 1_000)} s: nothing is sent, and nothing becomes final`;
    const isDown = !reachable && nowMs - sinceMs >= CHAIN_DOWN_MS;
    this.standing.judge({ code: "CHAIN_DOWN", message, chainId }, isDown, reachable);
  }
}

/** Judges the balances that were read last, for a create or at the lane's turn to be compared: nothing is asked here. */
function lookAtBalances({ knownBalances, settings, standing }: ChainContext, owned: readonly OwnedLane[]) {
  const { alertLowBalanceWei: threshold } = settings;
  if (threshold === null) return;
  for (const { lane } of owned) {
    const balance = knownBalances.get(lane.signer);
    if (balance === undefined) continue;
    const isLow = balance < threshold;
    const least = isLow ? `, less than ${ether(threshold)}` : "";
    const message = `${lane.signer} holds ${ether(balance)} on chain ${lane.chainId}${least}`;
    standing.judge({ code: "LOW_BALANCE", lane, message }, isLow);
  }
}
