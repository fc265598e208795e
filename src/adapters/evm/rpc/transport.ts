import { Departures, Flow } from "../../../domain/pace/departures.ts";
import { type Mask, maskOfShapes, maskTexts } from "../../../domain/text/mask.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { TelemetryEvent } from "../../../ports/telemetry.ts";
import { DEFAULT_RETRY_AFTER_MS, openHttp } from "./http.ts";
import { RpcErrorAnswer, RpcNotStarted, type RpcReply, RpcUnreachable, resultOf } from "./rpc-errors.ts";
import {
  type BatchRefusal,
  encodeBody,
  encodeCall,
  inOrder,
  NOT_STARTED,
  parseBody,
  type RpcCall,
  readBatch,
  readSingle,
  refuseStopped,
  Stopped,
  type WireCall,
} from "./wire.ts";

export type RpcTransport = ReturnType<typeof createTransport>;

/** Telemetry about consecutive calls of one request with the same method and result. */
export type RpcReport = Omit<
  Extract<TelemetryEvent, { readonly type: "rpc.request" }>,
  "type" | "chainId" | "endpoint"
>;

const DEFAULTS = {
  timeoutMs: 10_000,
  maxBatchCalls: 100,
  maxBatchBytes: 1_000_000,
  maxResponseBytes: 32 * 1024 * 1024,
  maxRequestsInFlight: 8,
  /**
   * Interval between requests under load. Each request carries all calls collected since the previous one. Fewer
   * requests are better: one request costs both sides as much as many calls, and providers count requests. 0: one
   * request per tick.
   */
  requestEveryMs: 0,
  /** Calls per second above which calls are collected into fewer requests. */
  gatherAbove: 850,
  /** Masks secrets in the endpoint's error texts: gateways quote the URL and headers of the request. */
  mask: maskOfShapes,
  onDisconnect: (): void => undefined,
};

export interface TransportOptions extends Readonly<Partial<typeof DEFAULTS>> {
  readonly url: string;
  readonly clock: Clock;
  readonly report: (report: RpcReport) => void;
}

/** Size limit on a response to a caller's own call: every connection may hold one in memory until it is forwarded. */
const MOST_PASSED_BYTES = 8 * 1024 * 1024;
/** Metric label that counts callers' own calls. */
const PASSED = "passed_through";
const REMEMBER_REFUSAL_MS = 10 * 60_000;
const PACE_GROWTH = 9 / 8;
/** Number of requests that may be sent at once after a pause, whatever the interval. */
const REQUESTS_IN_RESERVE = 8;

/**
 * JSON-RPC to one endpoint. Calls share one batch if they are made in the same tick, while all request slots are in
 * use, or while the interval between requests has not passed. So the number of round trips under load does not depend
 * on the number of calls.
 */
export function createTransport(given: TransportOptions) {
  const options = { ...DEFAULTS, ...given };
  const { clock, mask, report } = options;
  const http = openHttp(options);
  const maxResponseBytes = Math.min(MOST_PASSED_BYTES, options.maxResponseBytes);
  const passing = openHttp({ ...options, maxResponseBytes, onDisconnect: DEFAULTS.onDisconnect });
  const { label } = http;
  const limits = callLimits(options);
  const exchange = exchangeOver(http, limits);
  const deliver = async (groups: readonly Group[]) => {
    const calls = groups.flatMap((group) => group.calls);
    const startedMs = clock.monotonicMs();
    const replies = (await exchange(calls)).map((reply) => masked(reply, mask));
    const durationMs = clock.monotonicMs() - startedMs;
    for (const each of reportsOf(calls, replies)) report({ ...each, durationMs });
    for (const group of groups) group.settle(replies.splice(0, group.calls.length));
  };
  const [reads, sends] = [openLine(options, limits, deliver), openLine(options, limits, deliver)];
  let nextId = 1;
  const encode = (calls: readonly RpcCall[], inOrder: boolean) =>
    limits.split(calls.map((call) => encodeCall(nextId++, call, inOrder)));
  /** Makes several calls and returns their replies in order. Never throws. */
  const batch = async (calls: readonly RpcCall[]): Promise<readonly RpcReply[]> =>
    (await Promise.all(encode(calls, false).map(reads.add))).flat();

  return {
    label,
    /** Number of calls that currently fit into one request to the endpoint. */
    callsAtOnce: limits.callsAtOnce,
    batch,
    /** Makes one call. Throws `RpcErrorAnswer` for a node's error, `RpcUnreachable` if the outcome is unknown. */
    request: async (method: string, params: readonly unknown[]) => resultOf((await batch([{ method, params }]))[0]),
    /**
     * Like `batch`, for calls whose order matters: they are never divided between two concurrent requests. If one part
     * gets no response, the rest is not sent.
     */
    readInOrder: (calls: readonly RpcCall[]) => inOrder(encode(calls, true), reads.add),
    /** Like `readInOrder`, for sends. Reads and sends never share a request, so a slow estimate delays no broadcast. */
    sendInOrder: (calls: readonly RpcCall[]) => inOrder(encode(calls, true), sends.add),
    /**
     * Makes a caller's own call, alone and on separate connections, so that no call of the node waits for it. All are
     * counted under one metric label, because callers choose the method names.
     */
    async pass(call: RpcCall) {
      const startedMs = clock.monotonicMs();
      const wire = encodeCall(nextId++, call, false);
      const begin = () => {
        if (!wire.mayLeave()) throw new RpcNotStarted();
      };
      const reply = await exchangeOne(wire, label, () => passing.post(wire.json, begin));
      const result = resultLabel(reply);
      const durationMs = clock.monotonicMs() - startedMs;
      if (result !== null) report({ method: PASSED, result, calls: 1, durationMs });
      return resultOf(masked(reply, mask));
    },
    async close() {
      for (const line of [reads, sends]) line.close(new RpcUnreachable("closed", `${label} was closed`));
      await Promise.all([http.close(), passing.close()]);
    },
  };
}

type Options = Required<TransportOptions>;

/** Limits on the calls of one request, learned from the endpoint's refusals. */
function callLimits({ clock, maxBatchCalls, maxBatchBytes }: Options) {
  /**
   * Calls per batch that the endpoint accepts. Halved if the endpoint refuses a batch as too large; 1 if it accepts no
   * batches. Reset after a while.
   */
  let batchLimit = maxBatchCalls;
  let expiresMs: number | null = null;
  /** Calls per request that keep within the endpoint's rate limit: halved by a 429, then increased in steps. */
  let pace = maxBatchCalls;
  /** Time before which nothing is sent, set by Retry-After. */
  let silentUntilMs = 0;
  const callsAtOnce = () => Math.min(batchLimit, pace);
  return {
    callsAtOnce,
    isFull: (calls: number, bytes: number) => calls >= callsAtOnce() || bytes >= maxBatchBytes,
    isOver: (calls: number, bytes: number) => calls > callsAtOnce() || bytes > maxBatchBytes,
    /** Splits calls into requests at the limits on calls and bytes. A single call over the byte limit is sent alone. */
    split(calls: readonly WireCall[]): readonly (readonly WireCall[])[] {
      const parts: WireCall[][] = [];
      let bytes = 0;
      for (const call of calls) {
        const part = parts.at(-1);
        bytes += call.json.length;
        if (part === undefined || part.length >= callsAtOnce() || bytes > maxBatchBytes) {
          parts.push([call]);
          bytes = call.json.length;
        } else {
          part.push(call);
        }
      }
      return parts;
    },
    silentMs: () => silentUntilMs - clock.monotonicMs(),
    forgetOldRefusal() {
      if (expiresMs === null || clock.monotonicMs() < expiresMs) return;
      batchLimit = maxBatchCalls;
      expiresMs = null;
    },
    /** Lowers the limits after a refused batch. The returned function undoes that. */
    refused(calls: number, refusal: BatchRefusal) {
      const before = batchLimit;
      batchLimit = refusal === "tooLarge" ? Math.max(1, Math.floor(calls / 2)) : 1;
      expiresMs = clock.monotonicMs() + REMEMBER_REFUSAL_MS;
      return () => {
        batchLimit = before;
      };
    },
    answered(calls: number) {
      if (calls >= pace) pace = Math.min(Math.ceil(pace * PACE_GROWTH), maxBatchCalls);
    },
    /** Halves the calls per request after a rate limit: limiters that count calls would refuse the same batch again. */
    heed({ kind, retryAfterMs }: RpcUnreachable, calls: number) {
      if (kind === "rateLimited") pace = Math.max(1, calls >> 1);
      if (retryAfterMs !== null) silentUntilMs = clock.monotonicMs() + retryAfterMs;
    },
  };
}

type Limits = ReturnType<typeof callLimits>;

/** JSON-RPC calls that must be in one request. */
interface Group {
  readonly calls: readonly WireCall[];
  readonly bytes: number;
  readonly settle: (replies: readonly RpcReply[]) => void;
}

/** Queue of one kind of requests (reads or sends): waiting calls, requests in flight, and the pace of requests. */
function openLine(options: Options, limits: Limits, deliver: (groups: readonly Group[]) => Promise<void>) {
  const { clock, requestEveryMs, gatherAbove, maxRequestsInFlight } = options;
  const waiting: Group[] = [];
  const flow = new Flow(gatherAbove);
  const pace = new Departures(requestEveryMs, REQUESTS_IN_RESERVE, flow);
  let inFlight = 0;
  let cancelTimer: (() => void) | null = null;

  function flush() {
    limits.forgetOldRefusal();
    while (waiting.length > 0 && inFlight < maxRequestsInFlight) {
      const { fitting, isFull } = fill();
      if (!isFull && gathers()) return;
      pace.left(clock.monotonicMs());
      inFlight++;
      void deliver(waiting.splice(0, fitting)).finally(() => {
        inFlight--;
        flush();
      });
    }
  }

  /** True if the waiting calls stay queued until the interval allows the next request. */
  function gathers() {
    const waitMs = pace.waitMs(clock.monotonicMs());
    if (waitMs === 0) return false;
    cancelTimer ??= clock.after(waitMs, () => {
      cancelTimer = null;
      flush();
    });
    return true;
  }

  /** Number of queued groups that fit into one request (at least one), and whether they fill it. */
  function fill() {
    let [fitting, calls, bytes] = [0, 0, 0];
    for (const group of waiting) {
      calls += group.calls.length;
      bytes += group.bytes;
      if (fitting > 0 && limits.isOver(calls, bytes)) return { fitting, isFull: true };
      fitting++;
    }
    return { fitting, isFull: limits.isFull(calls, bytes) };
  }

  return {
    add: (calls: readonly WireCall[]) =>
      new Promise<readonly RpcReply[]>((settle) => {
        waiting.push({ calls, bytes: calls.reduce((sum, call) => sum + call.json.length, 0), settle });
        flow.add(clock.monotonicMs(), calls.length);
        // The first call of a tick schedules the flush. A call that fills the waiting request makes it leave at once.
        const fillsUp = cancelTimer !== null && fill().isFull;
        if (waiting.length === 1 || fillsUp) queueMicrotask(flush);
      }),
    close(error: RpcUnreachable) {
      for (const group of waiting.splice(0)) group.settle(allFailed(group.calls, error));
      cancelTimer?.();
    },
  };
}

type Exchange = (calls: readonly WireCall[]) => Promise<readonly RpcReply[]>;

function exchangeOver(http: ReturnType<typeof openHttp>, limits: Limits): Exchange {
  const { label } = http;
  const post = (calls: readonly WireCall[]) => postWithin(http, limits, calls);

  /**
   * Sends calls in one request. If some of them may no longer be sent, removes these and sends the others in a new
   * request.
   */
  async function exchange(calls: readonly WireCall[]): Promise<readonly RpcReply[]> {
    try {
      return await exchangeAll(calls);
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      const stopped = error.calls;
      const left = calls.filter((call) => !stopped.has(call));
      const replies = left.length === 0 ? [] : await exchange(left);
      let at = 0;
      return calls.map((call) => (stopped.has(call) ? NOT_STARTED : (replies[at++] as RpcReply)));
    }
  }

  async function exchangeAll(calls: readonly WireCall[]): Promise<readonly RpcReply[]> {
    const [first] = calls;
    if (first !== undefined && calls.length === 1) return [await exchangeOne(first, label, () => post(calls))];
    if (calls.length > limits.callsAtOnce()) return exchangeInParts(calls);
    const outcome = await exchangeBatch(calls);
    if (typeof outcome !== "string") return outcome;
    // Send a refused batch again in smaller parts. Repeats are safe: all calls are reads or sends with a fixed nonce.
    const takeBack = limits.refused(calls.length, outcome);
    const replies = await exchangeInParts(calls);
    // If the smaller parts all failed too, the endpoint is failing, and its refusal proves nothing about batches:
    // restore the limit.
    if (!replies.some((reply) => reply.ok || reply.error instanceof RpcErrorAnswer)) takeBack();
    return replies;
  }

  async function exchangeBatch(calls: readonly WireCall[]): Promise<readonly RpcReply[] | BatchRefusal> {
    try {
      const { status, body } = await post(calls);
      if (status === 413) return "tooLarge";
      const value = parseBody(body);
      // An error status with a body that is not JSON: a gateway that accepts no batches may answer with HTML.
      if (value === undefined && status >= 400) return "unsupported";
      const outcome = readBatch(value, calls, label);
      if (outcome !== "rateLimited") return outcome;
      // The endpoint reported a rate limit with status 200 and no time to wait.
      const limit = { retryAfterMs: DEFAULT_RETRY_AFTER_MS };
      const error = new RpcUnreachable(outcome, `${label} limits the rate`, limit);
      limits.heed(error, calls.length);
      return allFailed(calls, error);
    } catch (error) {
      const failure = unreachable(error, label);
      return failure.kind === "tooLarge" ? failure.kind : allFailed(calls, failure);
    }
  }

  async function exchangeInParts(calls: readonly WireCall[]): Promise<readonly RpcReply[]> {
    // Send calls whose order matters in separate parts. If one of them fails, the other calls, which only shared the
    // request, do not fail with it.
    const ordered = limits.split(calls.filter((call) => call.inOrder));
    const others = limits.split(calls.filter((call) => !call.inOrder));
    const replies = (await Promise.all([inOrder(ordered, exchange), ...others.map(exchange)])).flat();
    const replyTo = new Map([...ordered, ...others].flat().map((call, at) => [call, replies[at] as RpcReply]));
    return calls.map((call) => replyTo.get(call) as RpcReply);
  }

  return exchange;
}

async function exchangeOne(call: WireCall, label: string, post: () => Promise<{ body: string }>): Promise<RpcReply> {
  try {
    return readSingle(parseBody((await post()).body), call, label);
  } catch (error) {
    return { ok: false, error: unreachable(error, label) };
  }
}

async function postWithin({ post, label }: ReturnType<typeof openHttp>, limits: Limits, calls: readonly WireCall[]) {
  const waitMs = limits.silentMs();
  if (waitMs > 0) {
    refuseStopped(calls);
    const message = `${label} asked for a pause, of which ${Math.ceil(waitMs)} ms are left`;
    throw new RpcUnreachable("rateLimited", message, { retryAfterMs: waitMs });
  }
  let isBegun = false;
  try {
    const reply = await post(encodeBody(calls), () => {
      refuseStopped(calls);
      isBegun = true;
    });
    limits.answered(calls.length);
    return reply;
  } catch (error) {
    if (error instanceof RpcUnreachable) limits.heed(error, calls.length);
    // No connection was made, so nothing was written. If a call may no longer be sent, report it as not started.
    if (!isBegun) refuseStopped(calls);
    throw error;
  }
}

/** Makes one report for consecutive calls with the same method and result. */
function* reportsOf(calls: readonly WireCall[], replies: readonly RpcReply[]) {
  for (let from = 0; from < calls.length; ) {
    const { method } = calls[from] as WireCall;
    const result = resultLabel(replies[from]);
    let to = from + 1;
    while (calls[to]?.method === method && resultLabel(replies[to]) === result) to++;
    if (result !== null) yield { method, result, calls: to - from };
    from = to;
  }
}

/** Metric label of a call's result; null if nothing was sent. */
function resultLabel(reply: RpcReply | undefined): RpcReport["result"] | null {
  if (reply?.ok) return "ok";
  if (reply?.error instanceof RpcNotStarted) return null;
  return reply?.error instanceof RpcErrorAnswer ? "error" : "unreachable";
}

function allFailed(calls: readonly WireCall[], error: RpcUnreachable): readonly RpcReply[] {
  return calls.map(() => ({ ok: false, error }));
}

/** Converts an error to `RpcUnreachable`. Rethrows it if the call was not sent at all. */
function unreachable(error: unknown, label: string) {
  if (error instanceof RpcUnreachable) return error;
  if (error instanceof Stopped || error instanceof RpcNotStarted) throw error;
  return new RpcUnreachable("connection", `${label} could not be asked`, { cause: error });
}

function masked(reply: RpcReply, mask: Mask): RpcReply {
  if (reply.ok || !(reply.error instanceof RpcErrorAnswer)) return reply;
  const { code, message, data } = reply.error;
  return { ok: false, error: new RpcErrorAnswer(code, mask(message), maskTexts(mask, data)) };
}
