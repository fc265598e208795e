import type { Problem } from "../contract/problem.ts";
import { fromProblem, unexpectedAnswer, unreachable } from "./api-error.ts";

export interface ClientOptions {
  /** Where the node listens, with or without a path in front: `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly apiKey?: string;
  /** Another `fetch`, for proxies or tests. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

type QueryValue = string | number | undefined;

/** One call: path under /api/v1, what goes with it, and nothing retried. */
export interface Call extends CallOptions {
  readonly path: string;
  readonly query?: { readonly [name: string]: QueryValue };
  readonly body?: unknown;
  /** Instead of POST where there is a body, and of GET where there is none. */
  readonly method?: "DELETE";
}

export type Transport = <T>(call: Call) => Promise<T>;

export function createTransport(options: ClientOptions): Transport {
  const base = `${options.url.replace(/\/+$/, "")}/api/v1`;
  const fetch = options.fetch ?? globalThis.fetch;
  const headers: Record<string, string> = { accept: "application/json" };
  if (options.apiKey !== undefined) headers.authorization = `Bearer ${options.apiKey}`;

  return async <T>(call: Call): Promise<T> => {
    const url = `${base}${call.path}${queryString(call.query ?? {})}`;
    const [status, text] = await exchange(fetch, url, requestOf(call, headers));
    return read<T>(status, text);
  };
}

function requestOf(call: Call, headers: Readonly<Record<string, string>>): RequestInit {
  const abortable = call.signal === undefined ? {} : { signal: call.signal };
  // Whether it is there, not what it is: sending undefined is a mistake to be told, not a question.
  if (!("body" in call)) return { ...(call.method && { method: call.method }), headers, ...abortable };
  return {
    method: call.method ?? "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(call.body ?? null, bigintAsDigits),
    ...abortable,
  };
}

async function exchange(fetch: typeof globalThis.fetch, url: string, init: RequestInit): Promise<[number, string]> {
  try {
    const response = await fetch(url, init);
    return [response.status, await response.text()];
  } catch (error) {
    if (init.signal?.aborted) throw init.signal.reason;
    throw unreachable(url, error);
  }
}

function read<T>(status: number, text: string): T {
  const body = parse(text);
  if (status >= 200 && status < 300 && body !== undefined) return body as T;
  if (isProblem(body)) throw fromProblem(body);
  throw unexpectedAnswer(status, text);
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
