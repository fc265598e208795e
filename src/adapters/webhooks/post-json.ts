import { type BackoffRule, backoffMs } from "../../domain/pace/when.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";

export interface PostPorts {
  readonly clock: Clock;
  readonly entropy: Pick<Entropy, "random">;
  /** Fetch that connects only to addresses that hooks and alerts may reach (guarded-fetch.ts). */
  readonly fetch: typeof globalThis.fetch;
}

export interface Delivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Timeout of one try, from sending to the last byte of the response. */
  readonly timeoutMs: number;
  readonly tries: number;
  /** Aborts the delivery, even between two tries. */
  readonly signal?: AbortSignal;
}

/** The receiver of a webhook refused the request. */
class Refused extends Error {
  override readonly name = "Refused";
  /** True if a retry of the refused request would not help. */
  readonly isFinal: boolean;

  constructor(message: string, isFinal = true) {
    super(message);
    this.isFinal = isFinal;
  }
}

const PAUSE: BackoffRule = { firstMs: 250, mostMs: 5_000 };
const MAX_ANSWER_BYTES = 256 * 1024;

/**
 * Posts a body until the receiver accepts it. A missing response, 429 and 5xx are retried with back-off. Resolves with
 * the response's text.
 */
export async function postJson(ports: PostPorts, delivery: Delivery): Promise<string> {
  const { url, headers, body, timeoutMs, signal } = delivery;
  const request = { method: "POST", headers: { "content-type": "application/json", ...headers }, body, timeoutMs };
  for (let tries = 1; ; tries++) {
    try {
      return await fetchText(ports, url, signal === undefined ? request : { ...request, signal });
    } catch (error) {
      const isOver = (error instanceof Refused && error.isFinal) || signal?.aborted === true;
      if (isOver || tries >= delivery.tries) throw error;
      await ports.clock.sleep(backoffMs(PAUSE, tries, ports.entropy.random()), signal);
    }
  }
}

/** Sends one request, and resolves with the response's text if the status means success. */
export async function fetchText(
  { clock, fetch }: Pick<PostPorts, "clock" | "fetch">,
  url: string,
  { timeoutMs, signal, ...request }: RequestInit & Pick<Delivery, "timeoutMs" | "signal">,
): Promise<string> {
  const deadline = new AbortController();
  const cancelTimer = clock.after(timeoutMs, () => deadline.abort(new Error(`no HTTP response in ${timeoutMs} ms`)));
  const signals = signal === undefined ? [deadline.signal] : [deadline.signal, signal];
  try {
    // Refuse redirects: a signed body must reach no other address than the configured one.
    const response = await fetch(url, { ...request, redirect: "error", signal: AbortSignal.any(signals) });
    const text = await readLimited(response);
    if (response.ok) return text;
    throw new Refused(`the server answered HTTP ${response.status}`, response.status !== 429 && response.status < 500);
  } catch (error) {
    if (deadline.signal.aborted) throw deadline.signal.reason;
    throw error instanceof Refused ? error : new Error(reasonOf(error), { cause: error });
  } finally {
    cancelTimer();
  }
}

export function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("the server's response is not JSON");
  }
}

async function readLimited(response: Response) {
  const bytes: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new Refused(`the server answered with more than ${MAX_ANSWER_BYTES} bytes`);
    bytes.push(chunk);
  }
  return Buffer.concat(bytes).toString("utf8");
}

/**
 * Short reason of a failed fetch. Only the cause's code is shown: "fetch failed" explains nothing, and the cause's
 * message contains the address.
 */
function reasonOf(error: unknown) {
  const { cause } = Object(error) as { cause?: unknown };
  const { code } = Object(cause) as { code?: unknown };
  return `it cannot be reached (${typeof code === "string" ? code : "no connection"})`;
}
