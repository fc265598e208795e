/**
 * Admits requests before their bodies are read. Callers that repeat refused requests can ask more often than a node
 * can refuse, and the lease and the transactions need the same event loop. So each turn of the loop admits requests
 * for a limited time only. Later ones wait here in order and unread, which costs nothing, and do not repeat
 * meanwhile. Their number and their time are limited. While new connections keep arriving, admitted requests are
 * delayed, so that many are served with one commit.
 */
import type { Admittance } from "../../../application/loops/reception.ts";
import { FencepostError } from "../../../domain/errors.ts";
import type { Clock } from "../../../ports/clock.ts";

export interface AdmissionOptions {
  readonly clock: Clock;
  readonly arrivals: Pick<Arrivals, "keepComing">;
  readonly admittance: () => Admittance;
  /** Time per turn of the event loop in which requests are admitted. */
  readonly turnMs: number;
  /** Limit of waiting requests. */
  readonly limit: number;
  /** Called at most once a second, with a count. */
  readonly onRefused: (report: RefusalReport) => void;
  /** Called when the number of waiting requests may have changed. */
  readonly onWaiting: (count: number) => void;
}

export interface RefusalReport {
  readonly refused: number;
  /** Requests that still wait. */
  readonly waiting: number;
  /** Reason of the last refusal. */
  readonly reason: string;
}

export interface WaitingRequest {
  readonly arrivedMs: number;
  /** The caller has disconnected. */
  readonly isGone: () => boolean;
  readonly enter: (refusal?: FencepostError) => void;
}

/** Half of a usual client's timeout, so that time is left for the answer. */
const WAIT_AT_MOST_MS = 4_000;
const RETRY_MS = 20;
/** Longest delay for more connections. Only an overloaded node, or endless connections, reach it. */
const WAIT_FOR_OTHERS_MS = 500;
const REPORT_INTERVAL_MS = 1_000;
/**
 * Waiting requests admitted at once: adapted to the time of a turn. The minimum keeps commits large: a starved node
 * would otherwise spend its time on commits of one create each.
 */
const AT_ONCE = { least: 64, most: 512 };

export class AdmissionQueue {
  private readonly options: AdmissionOptions;
  private waiting: WaitingRequest[] = [];
  private turnBeganMs: number | null = null;
  private isScheduled = false;
  private admittedMs: number | null = null;
  private atOnce = AT_ONCE.least;
  private refused = 0;
  private reason = "";

  constructor(options: AdmissionOptions) {
    this.options = options;
  }

  add(request: WaitingRequest): void {
    const admittance = this.waiting.length === 0 ? this.options.admittance() : null;
    if (admittance?.kind === "closed") {
      this.refuse(request, admittance.refusal());
    } else if (admittance?.kind === "open" && !this.options.arrivals.keepComing && this.hasTime(request.arrivedMs)) {
      request.enter();
    } else if (this.waiting.length >= this.options.limit) {
      this.refuse(request, tooMany());
    } else {
      this.waiting.push(request);
      this.options.onWaiting(this.waiting.length);
      this.admitSoon();
    }
  }

  private hasTime(nowMs: number): boolean {
    if (this.turnBeganMs === null) {
      this.turnBeganMs = nowMs;
      this.options.clock.soon(() => {
        this.turnBeganMs = null;
      });
    }
    return nowMs - this.turnBeganMs < this.options.turnMs;
  }

  private admitSoon(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.options.clock.soon(() => this.admitTurn());
  }

  /** Once per turn of the event loop, so that new connections and answers are processed in between. */
  private admitTurn(): void {
    this.isScheduled = false;
    this.admit();
    this.options.onWaiting(this.waiting.length);
  }

  private admit(): void {
    const nowMs = this.options.clock.monotonicMs();
    const admittance = this.options.admittance();
    this.refuseOverdue(nowMs, admittance);
    if (this.waiting.length === 0 || admittance.kind === "soon") this.admittedMs = null;
    if (this.waiting.length === 0) return;
    if (admittance.kind === "soon") {
      this.isScheduled = true;
      this.options.clock.after(RETRY_MS, () => this.admitTurn());
      return;
    }
    this.admitSoon();
    if (this.shouldWaitForOthers(nowMs)) return;
    this.adapt(nowMs);
    for (const request of this.waiting.splice(0, this.atOnce)) {
      if (admittance.kind === "closed") this.refuse(request, admittance.refusal());
      else if (request.isGone()) this.refuse(request, tooMany());
      else request.enter();
    }
  }

  private shouldWaitForOthers(nowMs: number): boolean {
    const waitedMs = nowMs - (this.waiting[0]?.arrivedMs ?? nowMs);
    return this.options.arrivals.keepComing && waitedMs < WAIT_FOR_OTHERS_MS && this.waiting.length < AT_ONCE.most;
  }

  private adapt(nowMs: number): void {
    const { turnMs } = this.options;
    if (this.admittedMs !== null) {
      const wanted = nowMs - this.admittedMs > turnMs ? this.atOnce / 2 : this.atOnce * 2;
      this.atOnce = Math.min(AT_ONCE.most, Math.max(AT_ONCE.least, wanted));
    }
    this.admittedMs = nowMs;
  }

  private refuseOverdue(nowMs: number, admittance: Admittance): void {
    const first = this.waiting.findIndex(({ arrivedMs }) => nowMs - arrivedMs < WAIT_AT_MOST_MS);
    const overdue = this.waiting.splice(0, first === -1 ? this.waiting.length : first);
    for (const request of overdue) {
      this.refuse(request, admittance.kind === "open" ? tooMany() : admittance.refusal());
    }
  }

  private refuse(request: WaitingRequest, refusal: FencepostError): void {
    if (this.refused === 0) this.options.clock.after(REPORT_INTERVAL_MS, () => this.report());
    this.refused++;
    this.reason = refusal.message;
    request.enter(refusal);
  }

  private report(): void {
    const { refused, reason } = this;
    this.refused = 0;
    this.options.onRefused({ refused, reason, waiting: this.waiting.length });
  }
}

function tooMany(): FencepostError {
  return new FencepostError("QUEUE_FULL", "too many requests wait to be read; nothing was accepted", {
    retryAfterSeconds: 1,
  });
}

/**
 * Detects a burst of connections. libuv accepts one connection per turn of the event loop (since 1.45), so a thousand
 * callers that connect at once arrive in a thousand turns. Each request would be served alone, with a commit of its
 * own.
 */
export class Arrivals {
  private readonly clock: Pick<Clock, "soon">;
  private inARow = 0;
  private isNew = false;

  constructor(clock: Pick<Clock, "soon">) {
    this.clock = clock;
  }

  /** Called for each accepted connection. */
  readonly came = (): void => {
    this.inARow++;
    this.isNew = true;
    if (this.inARow === 1) this.clock.soon(() => this.turnEnded());
  };

  /** True after a connection in each of the last two turns. A single one is admitted at once. */
  get keepComing(): boolean {
    return this.inARow > 1;
  }

  private turnEnded(): void {
    if (!this.isNew) this.inARow = 0;
    else this.clock.soon(() => this.turnEnded());
    this.isNew = false;
  }
}
