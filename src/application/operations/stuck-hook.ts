import { defined } from "../../domain/defined.ts";
import { FencepostError, unavailable } from "../../domain/errors.ts";
import type { LaneKey } from "../../domain/lane.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { type Clock, within } from "../../ports/clock.ts";
import type { Decision } from "../../ports/lane-store.ts";
import type { AttemptRecord, TransactionRecord } from "../../ports/query-store.ts";
import type {
  StuckAction,
  StuckAttempt,
  StuckContext,
  StuckResolutionHook,
  StuckTrigger,
} from "../../ports/stuck-hook.ts";
import type { AlertSeverity, StuckResultLabel } from "../../ports/telemetry.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { orMovedOn, type ResolutionResult, resolveStuck } from "../detours/change-payload.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";
import type { Tracked } from "../lane/tracked.ts";
import { type Instruction, parseReason, parseSeverity, parseVerdict, type Verdict } from "../requests/action.ts";
import { asObject, given, refuseUnknownKeys } from "../requests/fields.ts";
import { parseMetadata } from "../requests/normalise.ts";

interface HookPorts extends CallPorts {
  /**
   * Hook that decides about stuck transactions. If absent, they wait for an operator. Only `validUntil` and the
   * policies for holes and expired reservations still sign a CANCEL or PLACEHOLDER then.
   */
  readonly stuckHook?: StuckResolutionHook;
}

export interface Consultation {
  readonly lane: OwnedLane;
  readonly context: ChainContext;
  readonly record: TransactionRecord;
  /** The transaction as its owner has it in memory; null if it is not signed yet. */
  readonly tx: Tracked | null;
  readonly trigger: StuckTrigger;
  /** The operator's action, if an operator requested the decision. */
  readonly by?: Instruction;
}

interface Ruling {
  readonly verdict: Verdict;
  readonly reason: string;
  readonly severity?: AlertSeverity;
  readonly decision: Decision;
}

/**
 * Time-outs and limits of hook calls: an adapter has time-outs of its own, but a hook loaded as a module may have none.
 */
const ANSWER_WITHIN_MS = 15_000;
const ASK_AGAIN_MS = 30_000;
const PER_LANE = { most: 10, withinMs: 60_000 };
const KEYS = ["action", "reason", "payload", "allowNoCode", "fees", "rawTransaction", "then", "severity", "audit"];

/**
 * Calls the hook and carries out its decision. The hook only decides; ownership of the lane, the fence, rate limits and
 * the audit are handled here. A hook that throws, hangs or returns an invalid answer has decided nothing.
 */
export class HookRunner {
  private readonly ports;
  private readonly perTransaction: RateLimit<string>;
  private readonly perLane: RateLimit<LaneKey>;
  private readonly underWay = new Set<string>();
  /** Last "no action" answer about each transaction: the same answer is not stored again. */
  private readonly noops = new Map<string, string>();

  constructor(ports: HookPorts) {
    this.ports = ports;
    this.perTransaction = new RateLimit(ports.clock, { most: 1, withinMs: ASK_AGAIN_MS });
    this.perLane = new RateLimit(ports.clock, PER_LANE);
  }

  get isConfigured(): boolean {
    return this.ports.stuckHook !== undefined;
  }

  /** Calls the hook automatically, within the rate limits; a failure raises at most an alert. */
  async ask(question: Omit<Consultation, "record">): Promise<void> {
    const { lane, tx } = question;
    if (!this.isConfigured || tx === null || this.underWay.has(tx.txId)) return;
    if (!this.perTransaction.take(tx.txId)) return;
    try {
      const record = await this.ports.store.transaction(tx.txId);
      if (record === null || (await this.isLeftToPeople(tx.txId))) return;
      await this.consult({ ...question, record });
    } catch (error) {
      if (isNoFailure(error)) return;
      const message = `nothing was done: ${messageOf(error)}`;
      const about = { lane: lane.lane, txId: tx.txId };
      this.ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "STUCK_HOOK_FAILED", message, ...about });
    }
  }

  /** Calls the hook for a decision. Throws errors that a caller can act on; counts the outcome. */
  async consult(consultation: Consultation): Promise<ResolutionResult> {
    const { lane, record, tx } = consultation;
    const { txId } = record;
    if (!this.isConfigured) {
      const detail = "no hook is configured (FENCEPOST_STUCK_HOOK): say which action to take";
      throw new FencepostError("CONFLICT", detail, { txId });
    }
    if (!this.perLane.take(lane.key)) {
      const detail = "the hook decides no more for this lane just now";
      this.report(lane, record, { action: "NOOP", result: "limited", reason: detail });
      throw new FencepostError("QUEUE_FULL", detail, { txId, retryAfterSeconds: 10 });
    }
    this.underWay.add(txId);
    try {
      const ruling = await this.decide(consultation);
      // The hook decided about the transaction as it was when the hook was called. If a new payload was signed since
      // then, the decision is void.
      const isAsShown = tx === null || tx.attempts.length === record.attempts.length;
      const became = isAsShown
        ? await orMovedOn(lane.term.begin(() => this.carryOut(consultation, ruling)))
        : "movedOn";
      this.report(lane, record, { action: ruling.verdict.action, result: became, reason: ruling.reason });
      return became;
    } finally {
      this.underWay.delete(txId);
    }
  }

  report(
    { lane, fence: { token } }: OwnedLane,
    { txId, nonce }: Pick<TransactionRecord, "txId" | "nonce">,
    outcome: { readonly action: StuckAction; readonly result: StuckResultLabel; readonly reason: string },
  ): void {
    this.ports.telemetry.emit({ type: "stuck.resolution", lane, token, txId, nonce, ...outcome });
  }

  private async decide(consultation: Consultation) {
    const { lane, record } = consultation;
    try {
      const asked = Promise.resolve().then(() => this.ports.stuckHook?.decide(this.describe(consultation)));
      const answer = await within<unknown>(this.ports.clock, asked, { ms: ANSWER_WITHIN_MS, late: unanswered });
      return this.rulingOf(consultation, answer);
    } catch (error) {
      this.report(lane, record, { action: "NOOP", result: "failed", reason: messageOf(error) });
      throw nothingDecided(error);
    }
  }

  private rulingOf({ trigger, by }: Consultation, answer: unknown): Ruling {
    const fields = asObject(answer, "decision");
    refuseUnknownKeys(fields, KEYS, "");
    const verdict = parseVerdict(this.ports.codec, fields);
    const reason = parseReason(fields.reason);
    const severity = given(fields.severity, parseSeverity);
    const { action, afterwards } = verdict;
    const asked = by === undefined ? {} : { ...by.decision.audit, requestedBy: by.decision.actor, request: by.reason };
    const own = defined({ trigger, action, afterwards });
    const audit = { ...parseMetadata(fields.audit, "audit"), ...asked, ...own };
    const decision = defined({ actor: "hook", audit, actionKey: by?.decision.actionKey });
    return defined({ verdict, reason, decision, severity });
  }

  private async carryOut(consultation: Consultation, ruling: Ruling): Promise<ResolutionResult> {
    const { lane, context, tx, record } = consultation;
    const { action } = ruling.verdict;
    const { severity, reason } = ruling;
    if (severity !== undefined) {
      const alert = { code: "STUCK_HOOK_DECISION", message: `${action}: ${reason}`, lane: lane.lane } as const;
      this.ports.telemetry.emit({ type: "alert", severity, ...alert, txId: record.txId });
    }
    if (this.isOldNews(consultation, ruling)) return "repeated";
    try {
      return await resolveStuck({ ports: this.ports, context, lane, record, tx, ...ruling });
    } catch (error) {
      if (error instanceof TermOver) throw error;
      this.report(lane, record, { action, result: "refused", reason: messageOf(error) });
      // An invalid decision counts as an error of the hook, not of the operator who requested the call.
      throw error instanceof FencepostError && error.code === "INVALID_REQUEST" ? nothingDecided(error) : error;
    }
  }

  private isOldNews({ record, by }: Consultation, { verdict, reason }: Ruling) {
    if (verdict.action !== "NOOP" || by !== undefined) return false;
    const news = `${verdict.afterwards ?? ""} ${reason}`;
    if (this.noops.get(record.txId) === news) return true;
    if (this.noops.size >= MOST_REMEMBERED) this.noops.clear();
    this.noops.set(record.txId, news);
    return false;
  }

  /**
   * True if the last decision about the transaction is the hook's, and is `manual`. It applies until a person has
   * acted, even after another node has taken over the lane.
   */
  private async isLeftToPeople(txId: string) {
    const decided = (await this.ports.store.history(txId)).filter(({ decision }) => decision !== undefined);
    const last = decided.at(-1)?.decision;
    return last?.actor === "hook" && last.audit?.afterwards === "manual";
  }

  private describe({ lane, record, tx, trigger }: Consultation): StuckContext {
    const { codec, clock } = this.ports;
    const { txId, requestId, state, subState, metadata } = record;
    const nonce = record.nonce as number;
    return {
      trigger,
      chainId: lane.lane.chainId,
      signer: codec.checksum(lane.lane.signer),
      txId,
      requestId,
      nonce,
      state: tx?.status.state ?? state,
      subState: tx?.status.subState ?? subState,
      attempts: record.attempts.map(describeAttempt),
      submitAttempts: tx?.submitAttempts ?? record.submitAttempts,
      lastError: tx?.lastError ?? record.lastError,
      lastErrorClass: tx?.pace.answer ?? null,
      ageSeconds: Math.max(0, Math.round((clock.now().getTime() - record.createdAt.getTime()) / 1_000)),
      queueDepth: lane.unminedDepth(),
      headOfLine: nonce === (lane.headOfLine() ?? nonce),
      metadata,
    };
  }
}

const MOST_REMEMBERED = 10_000;

function unanswered(): never {
  throw new Error(`the stuck hook did not answer within ${ANSWER_WITHIN_MS} ms`);
}

function nothingDecided(error: unknown) {
  return unavailable(`the stuck hook made no decision: ${messageOf(error)}`, error);
}

/**
 * True for an error that needs no alert: the hook was called too often, or the transaction was mined while the hook
 * decided.
 */
function isNoFailure(error: unknown) {
  if (!(error instanceof FencepostError)) return false;
  return error.code === "QUEUE_FULL" || (error.code === "CONFLICT" && error.extras.txHash !== undefined);
}

function describeAttempt({ ordinal, kind, txHash, gas, fees, firstSentAt }: AttemptRecord): StuckAttempt {
  const { type, ...prices } = fees;
  const digits = Object.entries(prices).map(([name, value]) => [name, String(value)]);
  const inDigits = Object.fromEntries(digits) as Record<keyof typeof prices, `${bigint}`>;
  return { ordinal, kind, txHash, gas: `${gas}`, type, ...inDigits, firstSentAt: firstSentAt?.toISOString() ?? null };
}

interface RateRule {
  readonly most: number;
  readonly withinMs: number;
}

/** Rate limit per key: a maximum number of events within any period of the given length. */
export class RateLimit<Key> {
  private readonly clock;
  private readonly rule;
  private readonly taken = new Map<Key, number[]>();

  constructor(clock: Pick<Clock, "monotonicMs">, rule: RateRule) {
    this.clock = clock;
    this.rule = rule;
  }

  /** Counts one event; false if the limit is reached. */
  take(key: Key): boolean {
    const nowMs = this.clock.monotonicMs();
    const recent = (this.taken.get(key) ?? []).filter((atMs) => nowMs - atMs < this.rule.withinMs);
    if (recent.length >= this.rule.most) return false;
    this.taken.delete(key);
    this.taken.set(key, [...recent, nowMs]);
    this.forget(nowMs);
    return true;
  }

  /** Removes expired keys. They come first, because keys are in the order of their last use. */
  private forget(nowMs: number) {
    for (const [key, times] of this.taken) {
      if (nowMs - (times.at(-1) ?? 0) < this.rule.withinMs) return;
      this.taken.delete(key);
    }
  }
}
