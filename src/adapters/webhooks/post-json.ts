import { type BackoffRule, backoffMs } from "../../domain/backoff.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";

export interface PostPorts {
  readonly clock: Clock;
  readonly entropy: Pick<Entropy, "random">;
  /** Another one for tests. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface Delivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Of one try, from sending to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly tries: number;
  /** Ends it early, also between two tries. */
  readonly signal?: AbortSignal;
}

/** The other side said no, in a way that saying it again would not change. */
class DeliveryRefused extends Error {
  override readonly name = "DeliveryRefused";
}

const PAUSE: BackoffRule = { firstMs: 250, mostMs: 5_000 };
const MAX_ANSWER_BYTES = 256 * 1024;

/** Posts until the receiver takes it: silence, 429 and 5xx are tried again with back-off. Resolves with the answer's text. */
export async function postJson(ports: PostPorts, delivery: Delivery): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      return await postOnce(ports, delivery);
    } catch (error) {
      const isOver = error instanceof DeliveryRefused || delivery.signal?.aborted === true;
      if (isOver || tries >= delivery.tries) throw error;
      await ports.clock.sleep(backoffMs(PAUSE, tries, ports.entropy.random()), delivery.signal);
    }
  }
}

async function postOnce(ports: PostPorts, delivery: Delivery): Promise<string> {
  const { url, headers, body, timeoutMs, signal } = delivery;
  const deadline = new AbortController();
  const cancelTimer = ports.clock.after(timeoutMs, () => deadline.abort(new Error(`no answer within ${timeoutMs} ms`)));
  const signals = signal === undefined ? [deadline.signal] : [deadline.signal, signal];
  try {
    const send = ports.fetch ?? globalThis.fetch;
    const response = await send(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
      // What is signed for one place must not be carried to another.
      redirect: "error",
      signal: AbortSignal.any(signals),
    });
    const text = await readLimited(response);
    if (response.ok) return text;
    const message = `answered ${response.status}`;
    throw response.status === 429 || response.status >= 500 ? new Error(message) : new DeliveryRefused(message);
  } catch (error) {
    if (deadline.signal.aborted) throw deadline.signal.reason;
    throw error instanceof DeliveryRefused ? error : new Error(reasonOf(error), { cause: error });
  } finally {
    cancelTimer();
  }
}

async function readLimited(response: Response): Promise<string> {
  const bytes: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new DeliveryRefused(`answered with more than ${MAX_ANSWER_BYTES} bytes`);
    bytes.push(chunk);
  }
  return Buffer.concat(bytes).toString("utf8");
}

/** `fetch failed` says nothing; what it failed of is in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
