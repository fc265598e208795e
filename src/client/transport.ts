import type { Problem } from "../contract/problem.ts";
import { type CallOptions, type Deadline, pause, underDeadline } from "./deadline.ts";
import { fromProblem, TimeoutError, unexpectedAnswer, unreachable } from "./error-classes.ts";
import { Attempts, Ring, type Routing } from "./failover.ts";

export interface ClientOptions {
  /**
   * Where nodes listen, with or without a path in front: `http://127.0.0.1:3000`. Of several, another one is asked where one
   * does not answer. The API key is sent to these and to no other address, whatever an answer says.
   */
  readonly url: string | readonly string[];
  readonly apiKey?: string;
  /** Another `fetch`, for proxies or tests. */
  readonly fetch?: typeof globalThis.fetch;
  /** Of each call as a whole, repeats and pauses included; 30,000 unless a call says otherwise. */
  readonly timeoutMs?: number;
  /** False: every call is one request, to the first address. For those who repeat what failed themselves. */
  readonly repeat?: boolean;
}

type QueryValue = string | number | undefined;

/** One call: path under /api/v1, and what goes with it. */
export interface Call extends CallOptions, Routing {
  readonly path: string;
  readonly query?: { readonly [name: string]: QueryValue };
  readonly body?: unknown;
  /** Instead of POST where there is a body, and of GET where there is none. */
  readonly method?: "DELETE" | "PUT";
  /** Sent as `Idempotency-Key`: the node does it once, however often it is asked. */
  readonly idempotencyKey?: string;
  /** The member that every answer to this has. One without it is not a node's, whatever its status says. */
  readonly tells?: string;
  /** The node may take this long before it answers, beside what any answer takes. */
  readonly heldMs?: number;
}

export type Transport = <T>(call: Call) => Promise<T>;

export const DEFAULT_TIMEOUT_MS = 30_000;
/** A node that has been silent for this long is asked again, or another one: its connection may be dead. */
const LONGEST_SILENCE_MS = 10_000;

export function createTransport(options: ClientOptions): Transport {
  const ring = new Ring([options.url].flat());
  const fetch = options.fetch ?? globalThis.fetch;
  const headers: Record<string, string> = { accept: "application/json" };
  if (options.apiKey !== undefined) headers.authorization = `Bearer ${options.apiKey}`;

  return async <T>(call: Call): Promise<T> => {
    const { heldMs = 0, signal, timeoutMs = (options.timeoutMs ?? DEFAULT_TIMEOUT_MS) + heldMs } = call;
    const path = `/api/v1${call.path}${queryString(call.query ?? {})}`;
    const request = requestOf(call, headers);
    const isPatient = call.once || options.repeat === false;
    const silence = isPatient ? Number.POSITIVE_INFINITY : LONGEST_SILENCE_MS + heldMs;
    const ask = async (base: string, deadline: Deadline) => {
      const go = (init: RequestInit) => fetch(base + path, { ...request, ...init });
      return read<T>(...(await exchange(go, base, { silence, ...deadline })), call.tells);
    };
    return underDeadline(`no answer to ${call.path}`, { timeoutMs, ...(signal && { signal }) }, (deadline) =>
      options.repeat === false
        ? ask(ring.bases[0] as string, deadline)
        : persist(new Attempts(ring, call), (base) => ask(base, deadline), deadline),
    );
  };
}

/** Repeats the call until an answer counts, or no time is left. */
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

function requestOf(call: Call, common: Readonly<Record<string, string>>): RequestInit {
  const { method, idempotencyKey } = call;
  const headers = { ...common, ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }) };
  // A redirect would be followed with the key in hand.
  const request: RequestInit = { headers, redirect: "manual", ...(method && { method }) };
  // Whether it is there, not what it is: sending undefined is a mistake to be told, not a question.
  if (!("body" in call)) return request;
  return {
    ...request,
    method: method ?? "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(call.body ?? null, bigintAsDigits),
  };
}

/** One request and its answer. Silence, and a connection that breaks, are UNREACHABLE. */
async function exchange(
  fetch: (init: RequestInit) => Promise<Response>,
  base: string,
  { silence, signal }: Pick<Deadline, "signal"> & { readonly silence: number },
): Promise<readonly [Response, string]> {
  try {
    return await underDeadline(`${base} was silent`, { timeoutMs: silence, signal }, async (each) => {
      const response = await fetch({ signal: each.signal });
      return [response, await response.text()] as const;
    });
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(base, error instanceof TimeoutError ? error.detail : error);
  }
}

function read<T>({ status, headers }: Response, text: string, tells?: string): T {
  const body = parse(text);
  if (status >= 200 && status < 300 && (tells ? Object(body)[tells] : body) !== undefined) return body as T;
  const error = isProblem(body) ? fromProblem(body) : unexpectedAnswer(status, text);
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  throw seconds >= 0 ? Object.assign(error, { retryAfterSeconds: seconds }) : error;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isProblem(body: unknown): body is Problem {
  if (typeof body !== "object" || body === null) return false;
  const { code, status, detail } = body as Partial<Problem>;
  return typeof code === "string" && typeof status === "number" && typeof detail === "string";
}

function queryString(query: { readonly [name: string]: QueryValue }): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  const text = given.toString();
  return text === "" ? "" : `?${text}`;
}

function bigintAsDigits(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
