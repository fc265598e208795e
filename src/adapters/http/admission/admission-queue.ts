/**
 * Admits requests before their bodies are read. Callers that repeat refused requests can send more requests than a node
 * can refuse, and lease renewal and transactions need the same event loop. So each turn of the loop admits requests for
 * a limited time only. Later requests wait here, in order and unread. This costs almost nothing, and their callers do
 * not repeat them meanwhile. The number of waiting requests and their waiting time are limited. While new connections
 * keep arriving, admission is delayed, so that many requests are served with one commit.
 */
import type { Admittance } from "../../../application/loops/reception.ts";
import { FencepostError } from "../../../domain/errors.ts";
import type { Clock } from "../../../ports/clock.ts";

export interface AdmissionOptions {
  readonly clock: Clock;
  /** `keepComing` is true while new connections keep arriving; see `arrivalsOf`. */
  readonly arrivals: { readonly keepComing: boolean };
  readonly admittance: () => Admittance;
  /** Time per turn of the event loop in which requests are admitted, in milliseconds. */
  readonly turnMs: number;
  /** Largest number of waiting requests. */
  readonly limit: number;
  /** Called at most once a second, with the number of refused requests. */
  readonly onRefused: (report: RefusalReport) => void;
  /** Called when the number of waiting requests may have changed. */
  readonly onWaiting: (count: number) => void;
}

export interface RefusalReport {
  readonly refused: number;
  /** Number of requests that still wait. */
  readonly waiting: number;
  /** Reason of the last refusal. */
  readonly reason: string;
}

export interface WaitingRequest {
  readonly arrivedMs: number;
  /** True if the caller has disconnected. */
  readonly isGone: () => boolean;
  readonly enter: (refusal?: FencepostError) => void;
}

/**
 * Longest time that a request waits for admission: half of a usual client's timeout, so that time is left for the
 * response.
 */
const WAIT_AT_MOST_MS = 4_000;
const RETRY_MS = 20;
/**
 * Longest delay of admission while new connections keep arriving. Reached only by an overloaded node or endless
 * connections.
 */
const WAIT_FOR_OTHERS_MS = 500;
const REPORT_INTERVAL_MS = 1_000;

export function admissionQueue(options: AdmissionOptions) {
  const { clock, arrivals, limit, onWaiting } = options;
  const waiting: WaitingRequest[] = [];
  const hasTime = turnTime(options);
  const batch = batchSize(options);
  const refuse = refusing(options, () => waiting.length);
  let isScheduled = false;

  const admitSoon = () => {
    if (isScheduled) return;
    isScheduled = true;
    clock.soon(admitTurn);
  };

  /**
   * Admits requests once per turn of the event loop, so that new connections and responses are processed in between.
   */
  const admitTurn = () => {
    isScheduled = false;
    admit(clock.monotonicMs(), options.admittance());
    onWaiting(waiting.length);
  };

  const admit = (nowMs: number, admittance: Admittance) => {
    refuseOverdue(nowMs, admittance);
    if (waiting.length === 0 || admittance.kind === "soon") batch.pause();
    if (waiting.length === 0) return;
    if (admittance.kind === "soon") {
      isScheduled = true;
      clock.after(RETRY_MS, admitTurn);
      return;
    }
    admitSoon();
    if (shouldWaitForOthers(nowMs)) return;
    for (const request of waiting.splice(0, batch.next(nowMs))) {
      if (admittance.kind === "closed") refuse(request, admittance.refusal());
      else if (request.isGone()) refuse(request, tooMany());
      else request.enter();
    }
  };

  const shouldWaitForOthers = (nowMs: number) => {
    const waitedMs = nowMs - (waiting[0]?.arrivedMs ?? nowMs);
    return arrivals.keepComing && waitedMs < WAIT_FOR_OTHERS_MS && waiting.length < AT_ONCE.most;
  };

  const refuseOverdue = (nowMs: number, admittance: Admittance) => {
    const first = waiting.findIndex(({ arrivedMs }) => nowMs - arrivedMs < WAIT_AT_MOST_MS);
    for (const request of waiting.splice(0, first === -1 ? waiting.length : first)) {
      refuse(request, admittance.kind === "open" ? tooMany() : admittance.refusal());
    }
  };

  return (request: WaitingRequest) => {
    const admittance = waiting.length === 0 ? options.admittance() : null;
    if (admittance?.kind === "closed") refuse(request, admittance.refusal());
    else if (admittance?.kind === "open" && !arrivals.keepComing && hasTime(request.arrivedMs)) request.enter();
    else if (waiting.length >= limit) refuse(request, tooMany());
    else {
      waiting.push(request);
      onWaiting(waiting.length);
      admitSoon();
    }
  };
}

/** Makes a function that returns true while this turn of the event loop may admit requests. */
function turnTime({ clock, turnMs }: AdmissionOptions) {
  let beganMs: number | null = null;
  return (nowMs: number) => {
    if (beganMs === null) {
      beganMs = nowMs;
      clock.soon(() => {
        beganMs = null;
      });
    }
    return nowMs - beganMs < turnMs;
  };
}

/**
 * Lower and upper limit on how many waiting requests are admitted at once. The number adapts to the duration of a turn
 * of the event loop. The lower limit keeps commits large: a starved node would otherwise spend its time on commits of
 * one create each.
 */
const AT_ONCE = { least: 64, most: 512 };

function batchSize({ turnMs }: AdmissionOptions) {
  let lastMs: number | null = null;
  let size = AT_ONCE.least;
  return {
    pause: () => {
      lastMs = null;
    },
    next: (nowMs: number) => {
      if (lastMs !== null) {
        const wanted = nowMs - lastMs > turnMs ? size / 2 : size * 2;
        size = Math.min(AT_ONCE.most, Math.max(AT_ONCE.least, wanted));
      }
      lastMs = nowMs;
      return size;
    },
  };
}

/** Refuses requests, and reports how many were refused. */
function refusing({ clock, onRefused }: AdmissionOptions, waiting: () => number) {
  let refused = 0;
  let reason = "";
  const report = () => {
    onRefused({ refused, reason, waiting: waiting() });
    refused = 0;
  };
  return (request: WaitingRequest, refusal: FencepostError) => {
    if (refused++ === 0) clock.after(REPORT_INTERVAL_MS, report);
    reason = refusal.message;
    request.enter(refusal);
  };
}

function tooMany() {
  return new FencepostError("QUEUE_FULL", "too many requests are queued on this node; nothing was accepted", {
    retryAfterSeconds: 1,
  });
}

/**
 * Detects a burst of connections. libuv accepts one connection per turn of the event loop (since 1.45), so a thousand
 * callers that connect at once arrive in a thousand turns. Without this check, each request would be served alone, with
 * a separate commit.
 */
export function arrivalsOf(clock: Pick<Clock, "soon">) {
  let inARow = 0;
  let isNew = false;
  const turnEnded = () => {
    if (!isNew) inARow = 0;
    else clock.soon(turnEnded);
    isNew = false;
  };
  return {
    /** Called for each accepted connection. */
    came: () => {
      inARow++;
      isNew = true;
      if (inARow === 1) clock.soon(turnEnded);
    },
    /**
     * True if a connection arrived in each of the last two turns of the event loop. A single connection is admitted at
     * once.
     */
    get keepComing() {
      return inARow > 1;
    },
  };
}
