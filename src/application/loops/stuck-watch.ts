/**
 * Watches every lane: a head of line, or any transaction, that has grown old, too many that are not mined, payloads that are refused or
 * were signed too often. Raises an alert while that lasts, and asks the hook what to do.
 */
import { pileSeen } from "../../domain/pace/lane-pace.ts";
import { SYMPTOMS } from "../../domain/troubles/table.ts";
import type { Ports } from "../../ports/ports.ts";
import type { StuckTrigger } from "../../ports/stuck-hook.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { sideBySide } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened, type Tracked } from "../lane/tracked.ts";
import type { HookRunner } from "../operations/stuck-hook.ts";

interface StuckWatchPorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly hook: Pick<HookRunner, "isConfigured" | "ask">;
}

type Question = Parameters<HookRunner["ask"]>[0];

/** One measure of a lane as a whole. */
interface Measure {
  readonly trigger: StuckTrigger;
  readonly code: (typeof SYMPTOMS)[number];
  readonly lasts: boolean;
  readonly message: string;
}

/** A hook that hangs must not make the others wait for long, nor be asked by all lanes at once. */
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

  /** Resolves when no question is out. */
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
    // An operator or the node has suspended it: that is a decision already.
    if (lane.suspended) return [];
    const first = measures.find(({ lasts }) => lasts);
    // So it is of a head that an operator holds back.
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
    return [
      {
        ...{
          trigger: "headAge",
          code: "HEAD_OF_LINE_OLD",
          lasts: isOpen && !isHeld && headMs > settings.alertHeadAgeMs,
        },
        message: `nonce ${head?.nonce} has been the head of its lane for ${seconds(headMs)}`,
      },
      {
        ...{
          trigger: "oldestAge",
          code: "PENDING_OLD",
          lasts: isOpen && !isHeld && oldestMs > settings.alertOldestAgeMs,
        },
        message: `the oldest transaction that is not final is ${seconds(oldestMs)} old`,
      },
      {
        ...{ trigger: "pendingDepth", code: "PENDING_DEEP", lasts: isOpen && depth > settings.alertPendingDepth },
        message: `${depth} transactions are not mined`,
      },
    ];
  }

  private isAlerted({ lane }: OwnedLane) {
    const standing = this.ports.chains.get(lane.chainId)?.standing;
    return SYMPTOMS.some((code) => standing?.has({ code, lane }) === true);
  }
}

/** What is wrong with single transactions, wherever they stand. */
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

/** Said when one more was reserved; what ends it (a use, a release, an expiry) is seen here. */
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
