/**
 * Posts outcomes to subscribers, signed as Standard Webhooks: `webhook-id`, `webhook-timestamp` and
 * `webhook-signature`, the HMAC-SHA256 of `id.timestamp.body`. `fencepost-event` names the kind of event.
 *
 * Secrets are derived (HKDF-SHA256) from the secret that the nodes share, the subscriber's id and a generation, and are
 * stored nowhere. While the shared secret is a list of several, each of them signs, so that receivers keep working
 * while it is replaced.
 */
import { createHmac, hash, hkdfSync } from "node:crypto";
import type { ReceiverAnswer } from "../../domain/webhooks/receiver-answers.ts";
import { retryAfterMs } from "../../domain/webhooks/receiver-answers.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CompletionRecord } from "../../ports/query-store.ts";
import type { SecretName, WebhookEvent, WebhookMessage, WebhookSender } from "../../ports/webhook-sender.ts";

export interface SignedWebhooksOptions {
  readonly clock: Pick<Clock, "now" | "after">;
  /** Fetch that connects only to addresses that webhooks may reach (guarded-fetch.ts). */
  readonly fetch: typeof globalThis.fetch;
  /** Secrets that the nodes share; empty: no secret can be derived. The first one makes what a person is shown. */
  readonly secrets: readonly string[];
  /** The feed's item as JSON. */
  readonly present: (completion: CompletionRecord) => unknown;
}

const PREFIX = "whsec_";
const KEY_BYTES = 32;
const ID_CHARACTERS = 8;
/** Time until the status of a response. */
export const ANSWER_WITHIN_MS = 10_000;
/** Time for the rest of a response, and its largest size. It is read only so that the connection can be used again. */
const REST_WITHIN_MS = 1_000;
const MOST_REST_BYTES = 64 * 1024;
/** Largest number of derived keys that are kept: two generations of each subscriber, with two shared secrets. */
const MOST_KEYS = 4_096;

export function createSignedWebhooks(options: SignedWebhooksOptions): WebhookSender {
  const { clock, secrets, present } = options;
  const keys = new Map<string, Buffer>();
  const keyOf = (shared: string, { subscriberId, generation }: SecretName) => {
    const info = `fencepost webhook ${subscriberId} ${generation}`;
    const name = `${secrets.indexOf(shared)} ${info}`;
    const key = keys.get(name) ?? Buffer.from(hkdfSync("sha256", shared, "fencepost", info, KEY_BYTES));
    if (keys.size >= MOST_KEYS) keys.clear();
    keys.set(name, key);
    return key;
  };
  const signed = ({ subscriberId, generations, eventId }: WebhookMessage, body: string) => {
    const id = `${subscriberId}_${eventId}`;
    const timestamp = `${Math.floor(clock.now().getTime() / 1_000)}`;
    const signatures = generations.flatMap((generation) =>
      secrets.map((shared) => {
        const hmac = createHmac("sha256", keyOf(shared, { subscriberId, generation }));
        return `v1,${hmac.update(`${id}.${timestamp}.${body}`).digest("base64")}`;
      }),
    );
    return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
  };
  return {
    secretOf(name) {
      const [first] = secrets;
      if (first === undefined) return null;
      const key = keyOf(first, name);
      return { secret: `${PREFIX}${key.toString("base64")}`, secretId: idOf(key) };
    },
    canSign: (name, secretId) => secrets.some((shared) => idOf(keyOf(shared, name)) === secretId),
    send(message) {
      const body = JSON.stringify(bodyOf(message.event, present));
      const headers = {
        "content-type": "application/json",
        "fencepost-event": message.event.kind,
        ...signed(message, body),
      };
      return post(options, message, { headers, body });
    },
  };
}

/** The beginning of the key's digest: enough to recognise it, and useless to forge a signature. */
function idOf(key: Buffer) {
  return hash("sha256", key, "hex").slice(0, ID_CHARACTERS);
}

function bodyOf(event: WebhookEvent, present: SignedWebhooksOptions["present"]): unknown {
  if (event.kind === "completion") return present(event.completion);
  const { kind: type, ...rest } = event;
  return { type, ...rest };
}

async function post(
  { clock, fetch }: SignedWebhooksOptions,
  { url, signal }: WebhookMessage,
  request: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
): Promise<ReceiverAnswer> {
  const deadline = new AbortController();
  const late = () => deadline.abort(new Error(`no HTTP response in ${ANSWER_WITHIN_MS / 1_000} s`));
  const cancelTimer = clock.after(ANSWER_WITHIN_MS, late);
  const signals = signal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, signal]);
  try {
    // Redirects are not followed: a signed body must reach no other address than the subscriber's.
    const response = await fetch(url, { method: "POST", ...request, redirect: "manual", signal: signals });
    const { status } = response;
    await readRest(clock, response);
    return { kind: "status", status, retryAfterMs: retryAfterMs(response.headers.get("retry-after"), clock.now()) };
  } catch (error) {
    if (deadline.signal.aborted) return { kind: "silence", reason: (deadline.signal.reason as Error).message };
    if (signal?.aborted === true) return { kind: "silence", reason: "the delivery was stopped" };
    return { kind: "silence", reason: reasonOf(error) };
  } finally {
    cancelTimer();
  }
}

/** Reads the rest of a response, up to a limit of time and size; beyond it the connection is closed. */
async function readRest(clock: SignedWebhooksOptions["clock"], { body }: Response) {
  if (body === null) return;
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => undefined);
  const cancelTimer = clock.after(REST_WITHIN_MS, cancel);
  try {
    for (let bytes = 0; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.length;
      if (bytes > MOST_REST_BYTES) return cancel();
    }
  } catch {
    // The status has arrived, and it alone decides.
  } finally {
    cancelTimer();
  }
}

/** Only the cause's code is shown: its message contains the address. */
function reasonOf(error: unknown) {
  const { code } = Object((Object(error) as { cause?: unknown }).cause) as { code?: unknown };
  return `it cannot be reached (${typeof code === "string" ? code : "no connection"})`;
}
