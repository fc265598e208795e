import { type Dispatcher, errors, Pool } from "undici";
import { codeOf } from "../../../domain/text/thrown.ts";
import type { Clock } from "../../../ports/clock.ts";
import { RpcUnreachable } from "./rpc-errors.ts";

interface HttpOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  /** Called when a connection ends: the next one may lead to another machine. */
  readonly onDisconnect?: () => void;
  /** PEM: certificate authority of the server, certificate and key of the client. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

const CONNECTIONS = 16;
/** Pause after a rate limit that names none. */
export const DEFAULT_RETRY_AFTER_MS = 1_000;
const LONGEST_RETRY_AFTER_MS = 60_000;
/** The endpoint, or a proxy before it, refused the request. The body is not a node's answer. */
const NO_ANSWER_STATUSES: readonly number[] = [401, 403, 407, 408];

/** A keep-alive connection pool that POSTs JSON. Throws `RpcUnreachable` if there is no usable body. */
export function openHttp(options: HttpOptions) {
  const { label, path, headers } = parseTarget(options.url);
  const pool = new Pool(label, {
    connections: CONNECTIONS,
    pipelining: 1,
    maxResponseSize: options.maxResponseBytes,
    // One deadline of the Clock port covers connecting, waiting and reading; undici's own timeouts are off.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: options.timeoutMs, ...options.tls },
  });
  pool.on("disconnect", () => options.onDisconnect?.());
  const underWay = new Set<AbortController>();
  let closed = false;

  return {
    /** Scheme and host only: user, password, path and query may be secrets. */
    label,
    /**
     * `begins` runs in the tick in which a connected socket takes the request, however long that took. If it throws,
     * nothing is written, and `post` throws the same error.
     */
    async post(body: string, begins: () => void = () => undefined) {
      const { retryAfter, ...reply } = await exchange(body, begins);
      refuseNonAnswers(reply.status, parseRetryAfter(retryAfter, options.clock), label);
      return reply;
    },
    async close() {
      closed = true;
      for (const each of underWay) each.abort();
      await pool.destroy();
    },
  };

  async function exchange(body: string, begins: () => void) {
    const deadline = new AbortController();
    underWay.add(deadline);
    const cancelTimer = options.clock.after(options.timeoutMs, () => deadline.abort());
    const exchanged = new Exchange(begins, deadline.signal);
    try {
      pool.dispatch({ method: "POST", path, headers, body }, exchanged);
      return await exchanged.reply;
    } catch (cause) {
      if (cause === exchanged.refusal) throw cause;
      if (closed) throw new RpcUnreachable("closed", `${label} was closed`, { cause });
      if (deadline.signal.aborted) {
        throw new RpcUnreachable("timeout", `${label} gave no answer in ${options.timeoutMs} ms`, { cause });
      }
      throw networkFailure(cause, label);
    } finally {
      cancelTimer();
      underWay.delete(deadline);
    }
  }
}

/**
 * One request and its reply. undici calls `onRequestStart` when a connected socket is free, in the tick in which it
 * writes the request (client-h1.js, `writeH1`). If that throws, it writes nothing and keeps the connection.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly reply: Promise<{ status: number; body: string; retryAfter: string | string[] | undefined }>;
  /** Error thrown by `begins`; null if it did not throw. */
  refusal: unknown = null;
  private readonly begins: () => void;
  private readonly signal: AbortSignal;
  private readonly chunks: Buffer[] = [];
  private head: { readonly status: number; readonly retryAfter: string | string[] | undefined } | null = null;
  private resolve: (reply: Awaited<Exchange["reply"]>) => void = () => undefined;
  private reject: (error: unknown) => void = () => undefined;

  constructor(begins: () => void, signal: AbortSignal) {
    this.begins = begins;
    this.signal = signal;
    this.reply = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    signal.addEventListener("abort", () => this.reject(signal.reason), { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.signal.throwIfAborted();
    try {
      this.begins();
    } catch (error) {
      this.refusal = error;
      throw error;
    }
    this.signal.addEventListener("abort", () => controller.abort(this.signal.reason), { once: true });
  }

  /** Also called for informational responses (1xx); the last call counts. */
  onResponseStart(_: unknown, status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.head = { status, retryAfter: headers["retry-after"] };
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    this.chunks.push(chunk);
  }

  onResponseEnd(): void {
    const body = new TextDecoder().decode(Buffer.concat(this.chunks));
    if (this.head === null) this.reject(new Error("the response has no status"));
    else this.resolve({ ...this.head, body });
  }

  onResponseError(_: unknown, error: Error): void {
    this.reject(error);
  }
}

function parseTarget(text: string) {
  // The error does not show the text: it may contain an API key.
  if (!URL.canParse(text)) throw new TypeError("an RPC URL is not a URL");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError(`an RPC URL must be http or https, not ${url.protocol.replace(":", "")}`);
  }
  const headers: Record<string, string> = { "content-type": "application/json", accept: "application/json" };
  if (url.username !== "" || url.password !== "") {
    const userinfo = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.authorization = `Basic ${Buffer.from(userinfo).toString("base64")}`;
  }
  return { label: url.origin, path: `${url.pathname}${url.search}`, headers };
}

function refuseNonAnswers(status: number, retryAfterMs: number | null, label: string): void {
  if (status === 429) {
    const waitMs = retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
    throw new RpcUnreachable("rateLimited", `${label} limits the rate (429)`, { retryAfterMs: waitMs });
  }
  if (status >= 500 || NO_ANSWER_STATUSES.includes(status)) {
    throw new RpcUnreachable("http", `${label} answered HTTP ${status}`, { retryAfterMs });
  }
}

/**
 * Retry-After of RFC 9110: seconds or a date; null if absent. Limited, so that no endpoint can stop requests for an
 * hour.
 */
function parseRetryAfter(header: string | string[] | undefined, clock: Clock): number | null {
  if (header === undefined) return null;
  const text = [header].flat()[0]?.trim() ?? "";
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - clock.now().getTime();
  if (!Number.isFinite(ms)) return DEFAULT_RETRY_AFTER_MS;
  return Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}

function networkFailure(cause: unknown, label: string): RpcUnreachable {
  if (cause instanceof errors.ResponseExceededMaxSizeError) {
    return new RpcUnreachable("tooLarge", `${label} answered with more bytes than allowed`, { cause });
  }
  return new RpcUnreachable("connection", `${label} is not reachable (${codeOf(cause) ?? "connection failed"})`, {
    cause,
  });
}
