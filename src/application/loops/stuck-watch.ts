/**
 * Looks at every lane for what should not be: a head of line, or anything, that has grown old, too many that are not
 * final, payloads that are refused or were signed too often. Says so once while it lasts, and asks the hook what to do.
 */
import type { AlertCode } from "../../domain/alerts.ts";
import type { LaneKey } from "../../domain/lane.ts";
import type { Ports } from "../../ports/ports.ts";
import type { StuckTrigger } from "../../ports/stuck-hook.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { sideBySide } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { Tracked } from "../lane/tracked.ts";
import type { HookRunner } from "../operations/stuck-hook.ts";

export interface StuckWatchPorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly hook: Pick<HookRunner, "isConfigured" | "ask">;
}

type Question = Parameters<HookRunner["ask"]>[0];

/** What is wrong with a lane as a whole. */
interface Finding {
  readonly trigger: StuckTrigger;
  readonly code: AlertCode;
  readonly message: string;
}

/** A hook that hangs must not make the others wait for long, nor be asked by all lanes at once. */
const ASK_AT_ONCE = 8;

export class StuckWatch {
  private readonly ports: StuckWatchPorts;
  private readonly told = new Map<LaneKey, ReadonlySet<string>>();
  private asking: Promise<void> | null = null;

  constructor(ports: StuckWatchPorts) {
    this.ports = ports;
  }

  look(lanes: readonly OwnedLane[]): void {
    const restless = lanes.filter((lane) => lane.hasUnmined() || this.told.has(lane.key));
    const questions = restless.flatMap((lane) => this.lookAt(lane));
    if (this.asking !== null || questions.length === 0 || !this.ports.hook.isConfigured) return;
    this.asking = sideBySide(questions, ASK_AT_ONCE, (question) => this.ports.hook.ask(question)).finally(() => {
      this.asking = null;
    });
  }

  /** What was said of a lane and is not over, by the codes of its alerts. */
  get firing(): ReadonlyMap<LaneKey, ReadonlySet<string>> {
    return this.told;
  }

  /** Resolves when no question is out. */
  async settled(): Promise<void> {
    await this.asking;
  }

  private lookAt(lane: OwnedLane): readonly Question[] {
    const context = this.ports.chains.get(lane.lane.chainId);
    const head = lane.unmined.get(lane.headOfLine() ?? -1);
    if (context === undefined) return [];
    const findings = lane.hasUnmined() ? this.findings(context, lane, head) : [];
    this.tell(lane, head, findings);
    // An operator or the node has suspended it: that is a decision already.
    if (lane.suspended) return [];
    const [first] = findings;
    // So it is of a head that an operator holds back.
    const isAsked = head !== undefined && first !== undefined && !head.held;
    const ofHead = isAsked ? [{ lane, context, tx: head, trigger: first.trigger }] : [];
    return [...singles(lane, context), ...ofHead];
  }

  private findings({ settings }: ChainContext, lane: OwnedLane, head: Tracked | undefined): readonly Finding[] {
    const { clock } = this.ports;
    const found: Finding[] = [];
    const { head: seen } = lane.pace;
    const headMs = seen.kind === "at" && seen.nonce === head?.nonce ? clock.monotonicMs() - seen.sinceMs : 0;
    if (headMs > settings.alertHeadAgeMs && head?.held !== true) {
      const message = `nonce ${head?.nonce} has been the head of its lane for ${seconds(headMs)}`;
      found.push({ trigger: "headAge", code: "HEAD_OF_LINE_OLD", message });
    }
    const oldestAt = lane.oldestPendingAt();
    const oldestMs = oldestAt === null ? 0 : clock.now().getTime() - oldestAt.getTime();
    if (oldestMs > settings.alertOldestAgeMs && head?.held !== true) {
      const message = `the oldest transaction that is not final is ${seconds(oldestMs)} old`;
      found.push({ trigger: "oldestAge", code: "PENDING_OLD", message });
    }
    const depth = lane.unminedDepth();
    if (depth > settings.alertPendingDepth) {
      found.push({ trigger: "pendingDepth", code: "PENDING_DEEP", message: `${depth} transactions are not mined` });
    }
    return found;
  }

  /** Each once, until it is over. */
  private tell(lane: OwnedLane, head: Tracked | undefined, findings: readonly Finding[]): void {
    const before = this.told.get(lane.key);
    for (const { code, message } of findings) {
      if (before?.has(code)) continue;
      const about = head === undefined ? {} : { txId: head.txId };
      this.ports.telemetry.emit({ type: "alert", severity: "WARNING", code, message, lane: lane.lane, ...about });
    }
    if (findings.length > 0) this.told.set(lane.key, new Set(findings.map(({ code }) => code)));
    else this.told.delete(lane.key);
  }
}

/** What is wrong with single transactions, wherever they stand. */
function singles(lane: OwnedLane, context: ChainContext): readonly Question[] {
  const { maxAttempts } = context.settings;
  return [...lane.unmined.values()].flatMap((tx): readonly Question[] => {
    if (tx.held) return [];
    if (tx.pace.answer === "rejected") return [{ lane, context, tx, trigger: "rejected" }];
    const isSpent = maxAttempts > 0 && tx.attempts.length >= maxAttempts;
    return isSpent ? [{ lane, context, tx, trigger: "maxAttempts" }] : [];
  });
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
