import { type Dispatcher, errors, Pool } from "undici";
import { codeOf } from "../../../domain/text/thrown.ts";
import type { Clock } from "../../../ports/clock.ts";
import { RpcUnreachable } from "./rpc-errors.ts";

interface HttpOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  /** Called when a connection ends, because the next connection may lead to another machine. */
  readonly onDisconnect?: () => void;
  /** TLS settings in PEM: the server's certificate authority, and the client's certificate and key. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

const CONNECTIONS = 16;
/** Pause after a rate limit whose response names no time. */
export const DEFAULT_RETRY_AFTER_MS = 1_000;
const LONGEST_RETRY_AFTER_MS = 60_000;
/**
 * HTTP statuses with which the endpoint, or a proxy before it, refuses a request. The body is not a node's response.
 */
const NO_ANSWER_STATUSES: readonly number[] = [401, 403, 407, 408];

/** Opens a keep-alive connection pool that POSTs JSON. `post` throws `RpcUnreachable` if there is no usable body. */
export function openHttp(options: HttpOptions) {
  const { label, path, headers } = parseTarget(options.url);
  const pool = new Pool(label, {
    connections: CONNECTIONS,
    pipelining: 1,
    maxResponseSize: options.maxResponseBytes,
    // One deadline of the Clock port covers connecting, waiting and reading, so undici's own timeouts for waiting and
    // reading are off.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: options.timeoutMs, ...options.tls },
  });
  pool.on("disconnect", () => options.onDisconnect?.());
  const underWay = new Set<AbortController>();
  let closed = false;

  return {
    /** Label of the endpoint: scheme and host only, because user, password, path and query may be secrets. */
    label,
    /**
     * Posts a body. `begins` runs in the tick in which a connected socket takes the request, however long the wait for
     * the socket was. If it throws, nothing is written, and `post` throws the same error.
     */
    async post(body: string, begins: () => void = () => undefined) {
      const deadline = new AbortController();
      underWay.add(deadline);
      const cancelTimer = options.clock.after(options.timeoutMs, () => deadline.abort());
      try {
        const request = { method: "POST" as const, path, headers, body };
        const { retryAfter, ...reply } = await exchange(pool, request, begins, deadline.signal);
        refuseNonAnswers(reply.status, parseRetryAfter(retryAfter, options.clock), label);
        return reply;
      } catch (cause) {
        if (cause instanceof Refused) throw cause.cause;
        if (cause instanceof RpcUnreachable) throw cause;
        if (closed) throw new RpcUnreachable("closed", `${label} was closed`, { cause });
        if (!deadline.signal.aborted) throw networkFailure(cause, label);
        throw new RpcUnreachable("timeout", `${label} gave no answer in ${options.timeoutMs} ms`, { cause });
      } finally {
        cancelTimer();
        underWay.delete(deadline);
      }
    },
    async close() {
      closed = true;
      for (const each of underWay) each.abort();
      await pool.destroy();
    },
  };
}

/** Wrapper for an error that `begins` threw; that error is its `cause`. */
class Refused extends Error {}

interface Reply {
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | string[] | undefined;
}

/**
 * Sends one request and reads its response. undici calls `onRequestStart` when a connected socket is free, in the tick
 * in which it writes the request (client-h1.js, `writeH1`). If that callback throws, undici writes nothing and keeps
 * the connection.
 */
function exchange(pool: Pool, request: Dispatcher.DispatchOptions, begins: () => void, signal: AbortSignal) {
  return new Promise<Reply>((resolve, reject) => {
    const chunks: Buffer[] = [];
    let head: Omit<Reply, "body"> | null = null;
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    pool.dispatch(request, {
      onRequestStart(controller) {
        signal.throwIfAborted();
        try {
          begins();
        } catch (cause) {
          throw new Refused("the request was stopped before it was sent", { cause });
        }
        signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
      },
      /** undici calls this function for informational responses (1xx) too; the last call counts. */
      onResponseStart(_, status, headers) {
        head = { status, retryAfter: headers["retry-after"] };
      },
      onResponseData: (_, chunk) => void chunks.push(chunk),
      onResponseEnd() {
        if (head === null) reject(new Error("the RPC endpoint's response has no HTTP status"));
        else resolve({ ...head, body: new TextDecoder().decode(Buffer.concat(chunks)) });
      },
      onResponseError: (_, error) => reject(error),
    });
  });
}

function parseTarget(text: string) {
  // The error message leaves out the URL, because it may contain an API key.
  if (!URL.canParse(text)) throw new TypeError("an RPC URL is not a valid URL");
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

function refuseNonAnswers(status: number, retryAfterMs: number | null, label: string) {
  if (status === 429) {
    const waitMs = retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
    throw new RpcUnreachable("rateLimited", `${label} limits the rate (429)`, { retryAfterMs: waitMs });
  }
  if (status >= 500 || NO_ANSWER_STATUSES.includes(status)) {
    throw new RpcUnreachable("http", `${label} answered HTTP ${status}`, { retryAfterMs });
  }
}

/**
 * Parses Retry-After (RFC 9110): seconds or a date; null if absent. The value is capped, so that an endpoint cannot
 * stop requests for an hour.
 */
function parseRetryAfter(header: string | string[] | undefined, clock: Clock) {
  if (header === undefined) return null;
  const text = [header].flat()[0]?.trim() ?? "";
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - clock.now().getTime();
  if (!Number.isFinite(ms)) return DEFAULT_RETRY_AFTER_MS;
  return Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}

function networkFailure(cause: unknown, label: string) {
  if (cause instanceof errors.ResponseExceededMaxSizeError) {
    return new RpcUnreachable("tooLarge", `${label} answered with more bytes than allowed`, { cause });
  }
  return new RpcUnreachable("connection", `${label} is not reachable (${codeOf(cause) ?? "connection failed"})`, {
    cause,
  });
}
