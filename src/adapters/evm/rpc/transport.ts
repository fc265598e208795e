import { type Mask, maskOfShapes, maskTexts } from "../../../domain/text/mask.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { TelemetryEvent } from "../../../ports/telemetry.ts";
import { DEFAULT_RETRY_AFTER_MS, openHttp } from "./http.ts";
import { RpcErrorAnswer, RpcNotStarted, type RpcReply, RpcUnreachable, resultOf } from "./rpc-errors.ts";
import {
  type BatchRefusal,
  encodeBody,
  encodeCall,
  type Group,
  inOrder,
  Line,
  NOT_STARTED,
  parseBody,
  type RpcCall,
  readBatch,
  readSingle,
  refuseStopped,
  Stopped,
  type WireCall,
} from "./wire.ts";

export type RpcTransport = Pick<HttpTransport, keyof HttpTransport>;

/** Consecutive calls of one request with the same method and result. */
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
   * Interval between requests under load; each takes all calls that have gathered. A request costs both sides as much
   * as many calls, and providers count requests. 0: one request per tick.
   */
  requestEveryMs: 0,
  /** Calls per second above which calls are gathered. */
  gatherAbove: 850,
  /** Applied to the endpoint's error texts: gateways quote the URL and headers of the request. */
  mask: maskOfShapes,
  onDisconnect: (): void => undefined,
};

export interface TransportOptions extends Readonly<Partial<typeof DEFAULTS>> {
  readonly url: string;
  readonly clock: Clock;
  readonly report: (report: RpcReport) => void;
}

/** Size limit on answers to callers' own calls: each is held in memory until it is sent on, for every connection. */
const MOST_PASSED_BYTES = 8 * 1024 * 1024;
/** Metric label for callers' own calls. */
const PASSED = "passed_through";
const REMEMBER_REFUSAL_MS = 10 * 60_000;
const PACE_GROWTH = 9 / 8;

export function createTransport(options: TransportOptions): RpcTransport {
  return new HttpTransport({ ...DEFAULTS, ...options });
}

/**
 * JSON-RPC to one endpoint. Calls leave together in one batch if they are made in the same tick, while all request
 * slots are in use, or before the pace allows the next request. So the number of round trips under load does not depend
 * on the number of calls.
 */
class HttpTransport {
  readonly #options: Required<TransportOptions>;
  readonly #http: ReturnType<typeof openHttp>;
  readonly #passing: ReturnType<typeof openHttp>;
  readonly #reads: Line;
  readonly #sends: Line;
  #nextId = 1;
  /**
   * Calls per batch that the endpoint accepts. Halved if it calls a batch too large; 1 if it takes none. Reset after a
   * while.
   */
  #batchLimit: number;
  #limitExpiresMs: number | null = null;
  /** Calls per request within the endpoint's rate: halved by a 429, then grown in steps. */
  #pace: number;
  /** Set by Retry-After; nothing is sent before. */
  #silentUntilMs = 0;

  constructor(options: Required<TransportOptions>) {
    this.#options = options;
    this.#http = openHttp(options);
    const maxResponseBytes = Math.min(MOST_PASSED_BYTES, options.maxResponseBytes);
    this.#passing = openHttp({ ...options, maxResponseBytes, onDisconnect: DEFAULTS.onDisconnect });
    this.#reads = new Line(options);
    this.#sends = new Line(options);
    this.#batchLimit = options.maxBatchCalls;
    this.#pace = options.maxBatchCalls;
  }

  get label(): string {
    return this.#http.label;
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  /** Number of calls that fit into one request now. */
  get callsAtOnce(): number {
    return Math.min(this.#batchLimit, this.#pace);
  }

  /** Throws `RpcErrorAnswer` (the node answered) or `RpcUnreachable` (the outcome is unknown). */
  async request(method: string, params: readonly unknown[]): Promise<unknown> {
    return resultOf((await this.batch([{ method, params }]))[0]);
  }

  /** Replies in the order of the calls. Never throws. */
  async batch(calls: readonly RpcCall[]): Promise<readonly RpcReply[]> {
    const parts = this.#split(this.#encode(calls, false));
    return (await Promise.all(parts.map((part) => this.#enqueue(this.#reads, part)))).flat();
  }

  /**
   * Like `batch`, for calls whose order matters. They are never in two requests at the same time. If a part gets no
   * answer, the rest is not sent.
   */
  readInOrder(calls: readonly RpcCall[]): Promise<readonly RpcReply[]> {
    return this.#inOrder(this.#reads, calls);
  }

  /** Like `readInOrder`. Reads and sends never share a request, so a slow estimate delays no broadcast. */
  sendInOrder(calls: readonly RpcCall[]): Promise<readonly RpcReply[]> {
    return this.#inOrder(this.#sends, calls);
  }

  #inOrder(line: Line, calls: readonly RpcCall[]): Promise<readonly RpcReply[]> {
    return inOrder(this.#split(this.#encode(calls, true)), (part) => this.#enqueue(line, part));
  }

  /**
   * A caller's own call, alone and on separate connections: no call of the node waits for it. All are counted under one
   * label, because callers choose the method names.
   */
  async pass(call: RpcCall): Promise<unknown> {
    const { mask, report } = this.#options;
    const startedMs = this.#nowMs;
    const wire = encodeCall(this.#nextId++, call, false);
    const begin = () => {
      if (!wire.mayLeave()) throw new RpcNotStarted();
    };
    const reply = await this.#exchangeOne(wire, () => this.#passing.post(wire.json, begin));
    const result = resultLabel(reply);
    if (result !== null) report({ method: PASSED, result, calls: 1, durationMs: this.#nowMs - startedMs });
    return resultOf(masked(reply, mask));
  }

  async close(): Promise<void> {
    for (const line of [this.#reads, this.#sends]) {
      for (const group of line.waiting.splice(0)) {
        group.settle(allFailed(group.calls, new RpcUnreachable("closed", `${this.label} was closed`)));
      }
      line.cancelTimer?.();
    }
    await Promise.all([this.#http.close(), this.#passing.close()]);
  }

  #encode(calls: readonly RpcCall[], inOrder: boolean): readonly WireCall[] {
    return calls.map((call) => encodeCall(this.#nextId++, call, inOrder));
  }

  /** Splits at the limits on calls and bytes. A single call over the byte limit is sent alone. */
  #split(calls: readonly WireCall[]): readonly (readonly WireCall[])[] {
    const parts: WireCall[][] = [];
    let bytes = 0;
    for (const call of calls) {
      const part = parts.at(-1);
      bytes += call.json.length;
      if (part === undefined || part.length >= this.callsAtOnce || bytes > this.#options.maxBatchBytes) {
        parts.push([call]);
        bytes = call.json.length;
      } else {
        part.push(call);
      }
    }
    return parts;
  }

  #enqueue(line: Line, calls: readonly WireCall[]): Promise<readonly RpcReply[]> {
    const bytes = calls.reduce((sum, call) => sum + call.json.length, 0);
    return new Promise((settle) => {
      line.waiting.push({ calls, bytes, settle });
      line.flow.add(this.#nowMs, calls.length);
      // The first call of a tick schedules the flush. A call that fills a paced request makes it leave at once.
      const fillsUp = line.cancelTimer !== null && this.#fill(line).isFull;
      if (line.waiting.length === 1 || fillsUp) queueMicrotask(() => this.#flush(line));
    });
  }

  #flush(line: Line): void {
    const { maxBatchCalls, maxRequestsInFlight } = this.#options;
    if (this.#limitExpiresMs !== null && this.#nowMs >= this.#limitExpiresMs) {
      this.#batchLimit = maxBatchCalls;
      this.#limitExpiresMs = null;
    }
    while (line.waiting.length > 0 && line.inFlight < maxRequestsInFlight) {
      const { fitting, isFull } = this.#fill(line);
      if (!isFull && this.#gathers(line)) return;
      line.pace.left(this.#nowMs);
      line.inFlight++;
      void this.#deliver(line.waiting.splice(0, fitting)).finally(() => {
        line.inFlight--;
        this.#flush(line);
      });
    }
  }

  /** True if the waiting calls stay until the pace allows the next request. */
  #gathers(line: Line): boolean {
    const waitMs = line.pace.waitMs(this.#nowMs);
    if (waitMs === 0) return false;
    line.cancelTimer ??= this.#options.clock.after(waitMs, () => {
      line.cancelTimer = null;
      this.#flush(line);
    });
    return true;
  }

  /** Number of waiting groups that fit into one request, at least one, and whether they fill it. */
  #fill({ waiting }: Line): { readonly fitting: number; readonly isFull: boolean } {
    const { maxBatchBytes } = this.#options;
    let [fitting, calls, bytes] = [0, 0, 0];
    for (const group of waiting) {
      calls += group.calls.length;
      bytes += group.bytes;
      if (fitting > 0 && (calls > this.callsAtOnce || bytes > maxBatchBytes)) return { fitting, isFull: true };
      fitting++;
    }
    return { fitting, isFull: calls >= this.callsAtOnce || bytes >= maxBatchBytes };
  }

  async #deliver(groups: readonly Group[]): Promise<void> {
    const calls = groups.flatMap((group) => group.calls);
    const startedMs = this.#nowMs;
    const replies = (await this.#exchange(calls)).map((reply) => masked(reply, this.#options.mask));
    this.#report(calls, replies, this.#nowMs - startedMs);
    for (const group of groups) group.settle(replies.splice(0, group.calls.length));
  }

  /** Calls that may no longer leave are removed, and the others are sent in a new request. */
  async #exchange(calls: readonly WireCall[]): Promise<readonly RpcReply[]> {
    try {
      return await this.#exchangeAll(calls);
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      const stopped = error.calls;
      const left = calls.filter((call) => !stopped.has(call));
      const replies = left.length === 0 ? [] : await this.#exchange(left);
      let at = 0;
      return calls.map((call) => (stopped.has(call) ? NOT_STARTED : (replies[at++] as RpcReply)));
    }
  }

  async #exchangeAll(calls: readonly WireCall[]): Promise<readonly RpcReply[]> {
    const [first] = calls;
    if (first !== undefined && calls.length === 1) return [await this.#exchangeOne(first, () => this.#post(calls))];
    if (calls.length > this.callsAtOnce) return this.#exchangeInParts(calls);
    const outcome = await this.#exchangeBatch(calls);
    return typeof outcome === "string" ? this.#afterRefusal(calls, outcome) : outcome;
  }

  async #exchangeBatch(calls: readonly WireCall[]): Promise<readonly RpcReply[] | BatchRefusal> {
    try {
      const { status, body } = await this.#post(calls);
      if (status === 413) return "tooLarge";
      const value = parseBody(body);
      // A gateway that takes no batches may answer with HTML.
      if (value === undefined && status >= 400) return "unsupported";
      const outcome = readBatch(value, calls, this.label);
      if (outcome !== "rateLimited") return outcome;
      // A rate limit reported with status 200 and no time to wait.
      const limit = { retryAfterMs: DEFAULT_RETRY_AFTER_MS };
      const error = new RpcUnreachable(outcome, `${this.label} limits the rate`, limit);
      this.#heed(error, calls.length);
      return allFailed(calls, error);
    } catch (error) {
      const failure = unreachable(error, this.label);
      return failure.kind === "tooLarge" ? "tooLarge" : allFailed(calls, failure);
    }
  }

  async #exchangeOne(call: WireCall, post: () => Promise<{ readonly body: string }>): Promise<RpcReply> {
    try {
      return readSingle(parseBody((await post()).body), call, this.label);
    } catch (error) {
      return { ok: false, error: unreachable(error, this.label) };
    }
  }

  /** Sends a refused batch again in smaller parts. All calls are safe to repeat: reads, or the same signed bytes. */
  async #afterRefusal(calls: readonly WireCall[], refusal: BatchRefusal): Promise<readonly RpcReply[]> {
    const before = this.#batchLimit;
    this.#batchLimit = refusal === "tooLarge" ? Math.max(1, Math.floor(calls.length / 2)) : 1;
    this.#limitExpiresMs = this.#nowMs + REMEMBER_REFUSAL_MS;
    const replies = await this.#exchangeInParts(calls);
    // The parts were refused as well: the endpoint is failing, which proves nothing about batches.
    if (!replies.some((reply) => reply.ok || reply.error instanceof RpcErrorAnswer)) this.#batchLimit = before;
    return replies;
  }

  async #exchangeInParts(calls: readonly WireCall[]): Promise<readonly RpcReply[]> {
    const ask = (part: readonly WireCall[]) => this.#exchange(part);
    // Calls that share the request by chance do not fail with the ordered ones.
    const ordered = this.#split(calls.filter((call) => call.inOrder));
    const others = this.#split(calls.filter((call) => !call.inOrder));
    const replies = (await Promise.all([inOrder(ordered, ask), ...others.map(ask)])).flat();
    const asked = [...ordered, ...others].flat();
    const replyTo = new Map(asked.map((call, at) => [call, replies[at] as RpcReply]));
    return calls.map((call) => replyTo.get(call) as RpcReply);
  }

  async #post(calls: readonly WireCall[]): Promise<{ readonly status: number; readonly body: string }> {
    const waitMs = this.#silentUntilMs - this.#nowMs;
    if (waitMs > 0) {
      refuseStopped(calls);
      const message = `${this.label} asked for a pause, of which ${Math.ceil(waitMs)} ms are left`;
      throw new RpcUnreachable("rateLimited", message, { retryAfterMs: waitMs });
    }
    let isBegun = false;
    const begin = () => {
      refuseStopped(calls);
      isBegun = true;
    };
    try {
      const reply = await this.#http.post(encodeBody(calls), begin);
      if (calls.length >= this.#pace)
        this.#pace = Math.min(Math.ceil(this.#pace * PACE_GROWTH), this.#options.maxBatchCalls);
      return reply;
    } catch (error) {
      if (error instanceof RpcUnreachable) this.#heed(error, calls.length);
      // No connection was made, so nothing was written: calls that may no longer leave have not left.
      if (!isBegun) refuseStopped(calls);
      throw error;
    }
  }

  /** Halves the calls per request: some rate limiters count calls, and would refuse the same batch without end. */
  #heed({ kind, retryAfterMs }: RpcUnreachable, calls: number): void {
    if (kind === "rateLimited") this.#pace = Math.max(1, calls >> 1);
    if (retryAfterMs !== null) this.#silentUntilMs = this.#nowMs + retryAfterMs;
  }

  #report(calls: readonly WireCall[], replies: readonly RpcReply[], durationMs: number): void {
    for (let from = 0; from < calls.length; ) {
      const { method } = calls[from] as WireCall;
      const result = resultLabel(replies[from]);
      let to = from + 1;
      while (calls[to]?.method === method && resultLabel(replies[to]) === result) to++;
      if (result !== null) this.#options.report({ method, result, calls: to - from, durationMs });
      from = to;
    }
  }
}

/** Null if nothing was sent. */
function resultLabel(reply: RpcReply | undefined): RpcReport["result"] | null {
  if (reply?.ok) return "ok";
  if (reply?.error instanceof RpcNotStarted) return null;
  return reply?.error instanceof RpcErrorAnswer ? "error" : "unreachable";
}

function allFailed(calls: readonly WireCall[], error: RpcUnreachable): readonly RpcReply[] {
  return calls.map(() => ({ ok: false, error }));
}

/** Rethrows if the call was not sent at all. */
function unreachable(error: unknown, label: string): RpcUnreachable {
  if (error instanceof RpcUnreachable) return error;
  if (error instanceof Stopped || error instanceof RpcNotStarted) throw error;
  return new RpcUnreachable("connection", `${label} could not be asked`, { cause: error });
}

function masked(reply: RpcReply, mask: Mask): RpcReply {
  if (reply.ok || !(reply.error instanceof RpcErrorAnswer)) return reply;
  const { code, message, data } = reply.error;
  return { ok: false, error: new RpcErrorAnswer(code, mask(message), maskTexts(mask, data)) };
}
