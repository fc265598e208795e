/**
 * Posts outcomes to subscribers, signed as Standard Webhooks: `webhook-id`, `webhook-timestamp` and
 * `webhook-signature`, the HMAC-SHA256 of `id.timestamp.body`. `fencepost-event` names the kind of event.
 *
 * Secrets are derived (HKDF-SHA256) from the secret that the nodes share, the subscriber's id and a generation, and are
 * stored nowhere. While the shared secret is a list of several, each of them signs, so that receivers keep working
 * while it is replaced.
 */
import { createHmac, hash, hkdfSync } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { Dispatcher } from "undici";
import type { ReceiverAnswer } from "../../domain/webhooks/receiver-answers.ts";
import { retryAfterMs } from "../../domain/webhooks/receiver-answers.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CompletionRecord } from "../../ports/query-store.ts";
import type { SecretName, WebhookEvent, WebhookMessage, WebhookSender } from "../../ports/webhook-sender.ts";

export interface SignedWebhooksOptions {
  readonly clock: Pick<Clock, "now" | "after">;
  /** Connections to addresses that webhooks may reach, and to no others (guarded-fetch.ts). */
  readonly dispatcher: Dispatcher;
  /** Names the sender to receivers and their firewalls. */
  readonly userAgent: string;
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
        "user-agent": options.userAgent,
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

/** Posts with undici's `request`: `fetch` costs the node three times as much for each delivery. No redirect is followed. */
async function post(
  { clock, dispatcher }: SignedWebhooksOptions,
  { url, signal }: WebhookMessage,
  content: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
): Promise<ReceiverAnswer> {
  const stopping = new AbortController();
  let reason = `no HTTP response in ${ANSWER_WITHIN_MS / 1_000} s`;
  const cancelTimer = clock.after(ANSWER_WITHIN_MS, () => stopping.abort());
  const stop = () => {
    reason = "the delivery was stopped";
    stopping.abort();
  };
  listenOnce(signal, stop);
  try {
    const { origin, pathname, search } = new URL(url);
    const place = { method: "POST", origin, path: `${pathname}${search}` } as const;
    const response = await dispatcher.request({ ...place, ...content, signal: stopping.signal });
    const { statusCode: status, headers } = response;
    const asked = headers["retry-after"];
    cancelTimer();
    await readRest(clock, response.body);
    return { kind: "status", status, retryAfterMs: retryAfterMs([asked ?? []].flat()[0] ?? null, clock.now()) };
  } catch (error) {
    return { kind: "silence", reason: stopping.signal.aborted ? reason : reasonOf(error) };
  } finally {
    cancelTimer();
    signal?.removeEventListener("abort", stop);
  }
}

/** Any number of deliveries of one subscriber listen to its signal, so that Node's warning about a leak would be wrong. */
function listenOnce(signal: AbortSignal | undefined, listener: () => void) {
  if (signal === undefined) return;
  setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
}

/** Reads the rest of a response; beyond a limit of time or size the connection is closed. The status alone decides. */
async function readRest(clock: SignedWebhooksOptions["clock"], body: Dispatcher.ResponseData["body"]) {
  const tooSlow = new AbortController();
  const cancelTimer = clock.after(REST_WITHIN_MS, () => tooSlow.abort());
  await body.dump({ limit: MOST_REST_BYTES, signal: tooSlow.signal }).catch(() => body.destroy());
  cancelTimer();
}

/** Only the error's code is shown: its message contains the address. */
function reasonOf(error: unknown) {
  const { code } = Object(error) as { code?: unknown };
  return `it cannot be reached (${typeof code === "string" ? code : "no connection"})`;
}
