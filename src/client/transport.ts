import type { Problem } from "../contract/schemas/problem.ts";
import { type CallOptions, type Deadline, newRequestId, pause, underDeadline } from "./deadline.ts";
import { fromProblem, invalidArgument, TimeoutError, unexpectedAnswer, unreachable } from "./error-classes.ts";
import { Attempts, Ring, type Routing } from "./failover.ts";

export interface ClientOptions {
  /**
   * URLs of nodes, with or without a path: `http://127.0.0.1:3000`. If one does not answer, another one is called. The
   * API key is sent only to these addresses, even if a response names another.
   */
  readonly url: string | readonly string[];
  /** Secret of the API key, sent as a bearer token. */
  readonly apiKey?: string | undefined;
  /** Custom `fetch`, for proxies or tests. */
  readonly fetch?: typeof globalThis.fetch;
  /** Time limit of each call in ms, repeats and pauses included; default 30,000. */
  readonly timeoutMs?: number;
  /** If false, every call is one request to the first address. Meant for callers that do their own retries. */
  readonly repeat?: boolean;
}

export type Query = Readonly<Record<string, unknown>>;

/** One request: method and path under /api/v1, and its parameters. */
export interface Call extends CallOptions, Routing {
  readonly at: string;
  /** Values of the path parameters, in order. */
  readonly params?: readonly string[];
  readonly query?: Query;
  readonly body?: unknown;
  /** The request has an idempotency key, generated if none is given. */
  readonly keyed?: true;
  /** Idempotency key, sent as `Idempotency-Key`: the node performs the action once, however often it is repeated. */
  readonly idempotencyKey?: string;
  /** Name of a member that every response has. A response without it does not come from a node, whatever its status. */
  readonly expects?: string;
  /** Time in ms for which the node may delay its response (long poll), in addition to the usual response time. */
  readonly heldMs?: number;
  /** The response is a stream of server-sent events: it resolves with the body, unread. */
  readonly streams?: true;
}

export type Transport = <T>(call: Call) => Promise<T>;

export const DEFAULT_TIMEOUT_MS = 30_000;
/**
 * Time in ms without a response after which the call is repeated, at this or another node: the connection may be dead.
 */
const LONGEST_SILENCE_MS = 10_000;
const EVENTS = "text/event-stream";

export function createTransport(options: ClientOptions): Transport {
  const ring = new Ring([options.url].flat());
  const fetch = options.fetch ?? globalThis.fetch;
  const headers: Record<string, string> = { accept: "application/json" };
  if (options.apiKey !== undefined) headers.authorization = `Bearer ${options.apiKey}`;

  return async <T>(call: Call): Promise<T> => {
    const { heldMs = 0, signal, timeoutMs = (options.timeoutMs ?? DEFAULT_TIMEOUT_MS) + heldMs } = call;
    const [method, path] = filled(call);
    const url = `/api/v1${path}${queryString(call.query ?? {})}`;
    const request = requestOf(call, method, call.streams ? { ...headers, accept: EVENTS } : headers);
    const isPatient = call.once || options.repeat === false;
    const silence = isPatient ? Number.POSITIVE_INFINITY : LONGEST_SILENCE_MS + heldMs;
    const ask = async (base: string, deadline: Deadline) => {
      const go = (init: RequestInit) => fetch(base + url, { ...request, ...init });
      const [response, text] = await exchange(go, base, { silence, streams: call.streams === true, ...deadline });
      return text === null ? (response.body as T) : read<T>(response, text, call.expects);
    };
    return underDeadline(`no answer to ${path}`, { timeoutMs, ...(signal && { signal }) }, (deadline) =>
      options.repeat === false
        ? ask(ring.bases[0] as string, deadline)
        : persist(new Attempts(ring, call), (base) => ask(base, deadline), deadline),
    );
  };
}

/** Repeats the call until a response is conclusive, or no time is left. */
async function persist<T>(
  attempts: Attempts,
  ask: (base: string) => Promise<T>,
  { signal, leftMs }: Deadline,
): Promise<T> {
  for (;;) {
    try {
      const answer = await ask(attempts.base);
      attempts.succeeded();
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      const waitMs = attempts.afterFailure(error);
      if (waitMs >= leftMs()) throw error;
      await pause(waitMs, signal);
    }
  }
}

/** Method and path of a call. */
function filled({ at, params = [] }: Call): readonly [string, string] {
  const given = params.values();
  return at.replace(/\{\w+\}/g, () => encodeURIComponent(String(given.next().value))).split(" ") as [string, string];
}

function requestOf(call: Call, verb: string, common: Readonly<Record<string, string>>): RequestInit {
  const method = verb.toUpperCase();
  const { idempotencyKey = call.keyed && newRequestId() } = call;
  const headers = { ...common, ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }) };
  // Redirects are not followed, because the API key would be sent along.
  const request: RequestInit = { method, headers, redirect: "manual" };
  // Checks whether `body` is present, not whether it is undefined: an undefined body is a caller's mistake, which the
  // node reports.
  if (!("body" in call)) return request;
  return {
    ...request,
    headers: { ...headers, "content-type": "application/json" },
    body: jsonOf(call.body ?? null),
  };
}

function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body, bigintAsDigits);
  } catch (error) {
    throw invalidArgument("body", "must be JSON", error);
  }
}

/**
 * Sends one request and reads its response; null if it is a stream. A missing response or a broken connection is
 * UNREACHABLE.
 */
async function exchange(
  fetch: (init: RequestInit) => Promise<Response>,
  base: string,
  { silence, signal, streams }: Pick<Deadline, "signal"> & { readonly silence: number; readonly streams: boolean },
): Promise<readonly [Response, string | null]> {
  try {
    return await underDeadline(`${base} was silent`, { timeoutMs: silence, signal }, async (each) => {
      const response = await fetch({ signal: each.signal });
      const isStream = streams && response.ok && response.headers.get("content-type")?.startsWith(EVENTS);
      return [response, isStream ? null : await response.text()] as const;
    });
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(base, error instanceof TimeoutError ? error.detail : error);
  }
}

function read<T>({ status, headers }: Response, text: string, expects?: string): T {
  const body = parse(text);
  if (status >= 200 && status < 300 && (expects ? Object(body)[expects] : body) !== undefined) return body as T;
  const error = isProblem(body) ? fromProblem(body) : unexpectedAnswer(status, text);
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  throw seconds >= 0 ? Object.assign(error, { retryAfterSeconds: seconds }) : error;
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isProblem(body: unknown): body is Problem {
  const { code, status, detail } = Object(body) as Partial<Problem>;
  return typeof code === "string" && typeof status === "number" && typeof detail === "string";
}

function queryString(query: Query): string {
  const text = new URLSearchParams(asParameters(query)).toString();
  return text && `?${text}`;
}

/** Converts query values to strings. Undefined, false and empty lists are left out. */
export function asParameters(query: Query): Readonly<Record<string, string>> {
  const isSaid = (value: unknown) =>
    value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
  const said = Object.entries(query).filter(([, value]) => isSaid(value));
  return Object.fromEntries(said.map(([name, value]) => [name, String(value)]));
}

function bigintAsDigits(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}` : value;
}
