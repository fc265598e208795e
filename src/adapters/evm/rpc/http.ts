import { errors, Pool } from "undici";
import type { Clock } from "../../../ports/clock.ts";
import { RpcUnreachable } from "./rpc-errors.ts";
import type { TransportOptions } from "./transport.ts";

interface HttpOptions extends Pick<Required<TransportOptions>, "url" | "clock" | "timeoutMs" | "maxResponseBytes"> {
  /** A connection has ended: another machine may answer at the next one. */
  readonly onDisconnect?: () => void;
  /** PEM: who vouches for the other side, and what this side shows. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

const CONNECTIONS = 16;
/** Where an endpoint limits the rate and does not say for how long. */
export const DEFAULT_RETRY_AFTER_MS = 1_000;
const LONGEST_RETRY_AFTER_MS = 60_000;
/** The endpoint, or something before it, turned us away; what it wrote into the body is no node's answer. */
const NO_ANSWER_STATUSES: readonly number[] = [401, 403, 407, 408];

/** One keep-alive connection pool that POSTs JSON. Every failure to obtain a usable body is `RpcUnreachable`. */
export function openHttp(options: HttpOptions) {
  const { label, path, headers } = parseTarget(options.url);
  const pool = new Pool(label, {
    connections: CONNECTIONS,
    pipelining: 1,
    maxResponseSize: options.maxResponseBytes,
    // The Clock port owns time: one deadline covers connecting, waiting and reading.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: options.timeoutMs, ...options.tls },
  });
  pool.on("disconnect", () => options.onDisconnect?.());
  const underWay = new Set<AbortController>();
  let closed = false;

  return {
    /** Scheme and host alone: user, password, path and query may all be secrets. */
    label,
    async post(body: string) {
      const { retryAfter, ...reply } = await exchange(body);
      refuseNonAnswers(reply.status, parseRetryAfter(retryAfter, options.clock), label);
      return reply;
    },
    async close() {
      closed = true;
      for (const each of underWay) each.abort();
      await pool.destroy();
    },
  };

  async function exchange(body: string) {
    const deadline = new AbortController();
    underWay.add(deadline);
    const cancelTimer = options.clock.after(options.timeoutMs, () => deadline.abort());
    try {
      const response = await pool.request({ method: "POST", path, headers, body, signal: deadline.signal });
      const retryAfter = response.headers["retry-after"];
      return { status: response.statusCode, body: await response.body.text(), retryAfter };
    } catch (cause) {
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

function parseTarget(text: string) {
  // The text is not echoed: a key may be in it.
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

/** RFC 9110: seconds, or a date; null: nothing was said. Bounded, so that no endpoint can silence us for an hour. */
function parseRetryAfter(header: string | string[] | undefined, clock: Clock): number | null {
  if (header === undefined) return null;
  const text = [header].flat()[0]?.trim() ?? "";
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - clock.now().getTime();
  if (!Number.isFinite(ms)) return DEFAULT_RETRY_AFTER_MS;
  return Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}

function networkFailure(cause: unknown, label: string): RpcUnreachable {
  if (cause instanceof errors.ResponseExceededMaxSizeError) {
    return new RpcUnreachable("tooLarge", `${label} answered with more than is taken`, { cause });
  }
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "connection failed";
  return new RpcUnreachable("connection", `${label} is not reachable (${code})`, { cause });
}
