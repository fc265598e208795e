/**
 * Where requests are let in, before their bodies are read. Callers who repeat what was refused can ask more often than a
 * node can refuse, and what it does for them it does not do for its lease and its transactions: those wait for the same
 * event loop. So a turn of the loop lets requests in for a bounded time only; later requests wait here, in order and
 * unread, which costs nothing, and while they wait they do not repeat. A bounded number waits, for a bounded time. While
 * connections keep coming in, the requests already here wait for more, so that they are served together.
 */
import type { Admittance } from "../../application/admittance.ts";
import { FencepostError } from "../../domain/errors.ts";
import type { Clock } from "../../ports/clock.ts";

export interface DoorOptions {
  readonly clock: Clock;
  readonly arrivals: Pick<Arrivals, "keepComing">;
  readonly admittance: () => Admittance;
  /** For how long requests are let in during one turn of the event loop. */
  readonly turnMs: number;
  /** How many may wait. */
  readonly limit: number;
  /** At most once a second, however many there were. */
  readonly onRefused: (report: RefusalReport) => void;
  /** How many wait, whenever that may have changed. */
  readonly onWaiting: (count: number) => void;
}

export interface RefusalReport {
  readonly refused: number;
  /** Still at the door. */
  readonly waiting: number;
  /** Of the last one. */
  readonly reason: string;
}

export interface Visitor {
  readonly arrivedMs: number;
  /** It has hung up meanwhile. */
  readonly isGone: () => boolean;
  readonly enter: (refusal?: FencepostError) => void;
}

/** Below what a client waits for, with as much left for the answer. */
const WAIT_AT_MOST_MS = 4_000;
const LOOK_AGAIN_MS = 20;
/** For others who are still connecting. Only a node that is short of time, or called without end, ever needs as much. */
const WAIT_FOR_OTHERS_MS = 500;
const REPORT_EVERY_MS = 1_000;
/**
 * How many waiting requests are let in at once: as many as a turn has time for, found by trying. Not fewer than make a
 * commit worth its while: a node that is starved would spend the little time it has on commits of one create each.
 */
const AT_ONCE = { least: 64, most: 512 };

export class Door {
  private readonly options: DoorOptions;
  private waiting: Visitor[] = [];
  private turnBeganMs: number | null = null;
  private isLooking = false;
  private letInMs: number | null = null;
  private atOnce = AT_ONCE.least;
  private refused = 0;
  private reason = "";

  constructor(options: DoorOptions) {
    this.options = options;
  }

  ask(visitor: Visitor): void {
    const admittance = this.waiting.length === 0 ? this.options.admittance() : null;
    if (admittance?.kind === "closed") {
      this.refuse(visitor, admittance.refusal());
    } else if (admittance?.kind === "open" && !this.options.arrivals.keepComing && this.hasTime(visitor.arrivedMs)) {
      visitor.enter();
    } else if (this.waiting.length >= this.options.limit) {
      this.refuse(visitor, tooMany());
    } else {
      this.waiting.push(visitor);
      this.options.onWaiting(this.waiting.length);
      this.lookSoon();
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

  private lookSoon(): void {
    if (this.isLooking) return;
    this.isLooking = true;
    this.options.clock.soon(() => this.look());
  }

  /** One look in a turn of the event loop, so that new connections and answers of others are heard in between. */
  private look(): void {
    this.isLooking = false;
    this.letIn();
    this.options.onWaiting(this.waiting.length);
  }

  private letIn(): void {
    const nowMs = this.options.clock.monotonicMs();
    const admittance = this.options.admittance();
    this.refuseTired(nowMs, admittance);
    if (this.waiting.length === 0 || admittance.kind === "soon") this.letInMs = null;
    if (this.waiting.length === 0) return;
    if (admittance.kind === "soon") {
      this.isLooking = true;
      this.options.clock.after(LOOK_AGAIN_MS, () => this.look());
      return;
    }
    this.lookSoon();
    if (this.areOthersComing(nowMs)) return;
    this.adapt(nowMs);
    for (const visitor of this.waiting.splice(0, this.atOnce)) {
      if (admittance.kind === "closed") this.refuse(visitor, admittance.refusal());
      else if (visitor.isGone()) this.refuse(visitor, tooMany());
      else visitor.enter();
    }
  }

  private areOthersComing(nowMs: number): boolean {
    const waitedMs = nowMs - (this.waiting[0]?.arrivedMs ?? nowMs);
    return this.options.arrivals.keepComing && waitedMs < WAIT_FOR_OTHERS_MS && this.waiting.length < AT_ONCE.most;
  }

  private adapt(nowMs: number): void {
    const { turnMs } = this.options;
    if (this.letInMs !== null) {
      const wanted = nowMs - this.letInMs > turnMs ? this.atOnce / 2 : this.atOnce * 2;
      this.atOnce = Math.min(AT_ONCE.most, Math.max(AT_ONCE.least, wanted));
    }
    this.letInMs = nowMs;
  }

  private refuseTired(nowMs: number, admittance: Admittance): void {
    const first = this.waiting.findIndex(({ arrivedMs }) => nowMs - arrivedMs < WAIT_AT_MOST_MS);
    const tired = this.waiting.splice(0, first === -1 ? this.waiting.length : first);
    for (const visitor of tired) {
      this.refuse(visitor, admittance.kind === "open" ? tooMany() : admittance.refusal());
    }
  }

  private refuse(visitor: Visitor, refusal: FencepostError): void {
    if (this.refused === 0) this.options.clock.after(REPORT_EVERY_MS, () => this.report());
    this.refused++;
    this.reason = refusal.message;
    visitor.enter(refusal);
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
 * Whether connections keep coming in. libuv accepts one of them in a turn of the event loop (since 1.45: "don't accept()
 * connections in a loop"), so a thousand callers who connect at once arrive one by one, in a thousand turns. The request
 * of each would be served alone, with a commit of its own.
 */
export class Arrivals {
  private readonly clock: Pick<Clock, "soon">;
  private inARow = 0;
  private isNew = false;

  constructor(clock: Pick<Clock, "soon">) {
    this.clock = clock;
  }

  /** A connection was accepted. */
  readonly came = (): void => {
    this.inARow++;
    this.isNew = true;
    if (this.inARow === 1) this.clock.soon(() => this.turnEnded());
  };

  /** One in each of the last turns, so there may be more; a single one is let in as it comes. */
  get keepComing(): boolean {
    return this.inARow > 1;
  }

  private turnEnded(): void {
    if (!this.isNew) this.inARow = 0;
    else this.clock.soon(() => this.turnEnded());
    this.isNew = false;
  }
}
