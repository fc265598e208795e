/**
 * Looks at every lane for what should not be: a head of line, or anything, that has grown old, too many that are not
 * final, payloads that are refused or were signed too often. Says so once while it lasts and when it is over, and asks the
 * hook what to do.
 */
import type { AlertCode } from "../../domain/alerts.ts";
import { pileSeen, watchLooked } from "../../domain/pace/lane-pace.ts";
import type { Ports } from "../../ports/ports.ts";
import type { StuckTrigger } from "../../ports/stuck-hook.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { sideBySide } from "../lane/activity.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { happened, type Tracked } from "../lane/tracked.ts";
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

/** Codes of the findings below. */
const WATCHED: readonly AlertCode[] = ["HEAD_OF_LINE_OLD", "PENDING_OLD", "PENDING_DEEP"];

type OfHead = { readonly txId?: string };

/** A hook that hangs must not make the others wait for long, nor be asked by all lanes at once. */
const ASK_AT_ONCE = 8;

export class StuckWatch {
  private readonly ports: StuckWatchPorts;
  private asking: Promise<void> | null = null;

  constructor(ports: StuckWatchPorts) {
    this.ports = ports;
  }

  look(lanes: readonly OwnedLane[]): void {
    const questions = lanes.filter(isRestless).flatMap((lane) => this.lookAt(lane));
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
    const findings = lane.hasUnmined() ? this.findings(context, lane, head) : [];
    report(context, lane, findings, head === undefined ? {} : { txId: head.txId });
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
}

/** A lane that was just read again is looked at once: alerts from before may be over. */
function isRestless(lane: OwnedLane): boolean {
  const { pace } = lane;
  return lane.hasUnmined() || pace.firing === null || pace.firing.size > 0 || pace.pileSaid;
}

/** Raises each alert once, and resolves it when it is over. */
function report({ standing }: ChainContext, owned: OwnedLane, findings: readonly Finding[], about: OfHead): void {
  const { lane, pace } = owned;
  const found = new Set<AlertCode>(findings.map(({ code }) => code));
  for (const { code, message } of findings) standing.raise({ severity: "WARNING", code, message, lane, ...about });
  for (const code of pace.firing ?? WATCHED) {
    if (!found.has(code)) standing.resolve({ code, lane }, `${lane.signer} is below the threshold again`);
  }
  if (found.size > 0 || pace.firing?.size !== 0) happened(owned, watchLooked, found);
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
function endPile({ settings, standing }: ChainContext, lane: OwnedLane): void {
  const { reserved } = lane.nonces;
  if (!lane.pace.pileSaid || reserved > settings.alertReserved) return;
  happened(lane, pileSeen, false);
  standing.resolve(
    { code: "RESERVED_PILE_UP", lane: lane.lane },
    `${reserved} nonces of ${lane.lane.signer} are reserved`,
  );
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
