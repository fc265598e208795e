/** A `fetch` that replaces every node: it records requests and answers them as the test says. */
export interface Asked {
  readonly base: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>> | null;
}

export type Answering = (asked: Asked, turn: number) => Response | Promise<Response>;

export interface ScriptedFetch {
  readonly fetch: typeof globalThis.fetch;
  readonly asked: readonly Asked[];
}

export function scriptedFetch(answering: Answering): ScriptedFetch {
  const asked: Asked[] = [];
  const fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const { origin, pathname, search } = new URL(String(url));
    const headers = new Headers(init.headers);
    const body = init.body === undefined ? null : (JSON.parse(String(init.body)) as Asked["body"]);
    const one = { base: origin, method: init.method ?? "GET", path: `${pathname}${search}`, headers, body };
    const turn = asked.push(one) - 1;
    return Promise.race([answering(one, turn), whenAborted(init.signal ?? null)]);
  };
  return { fetch, asked };
}

function whenAborted(signal: AbortSignal | null): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

/** Breaks the connection, so that the request may or may not have been carried out. */
export function lost(): never {
  throw new TypeError("fetch failed");
}

export const silence = (): Promise<Response> => new Promise(() => undefined);

export function problem(
  code: string,
  status: number,
  members: object = {},
  headers: Record<string, string> = {},
): Response {
  const body = { type: `/docs#${code}`, title: code, status, code, detail: "scripted", ...members };
  return Response.json(body, { status, headers });
}

export const created = (body: Asked["body"], members: object = {}): Response =>
  Response.json(
    {
      txId: "019a4b7e-0000-7000-8000-000000000001",
      chainId: 31_337,
      signer: body?.signer,
      nonce: 7,
      state: "ALLOCATED",
      requestId: body?.requestId,
      ...members,
    },
    { status: 202 },
  );
