/**
 * Sends alerts to a webhook, for installations without Alertmanager. An alert is sent once per window. If it was
 * repeated in the window, it is sent again with a count. When it is resolved, one message about that is sent. The sink
 * cannot block or crash the node: the queue has a limit, and if the webhook is down, alerts are dropped, but the log
 * still has them.
 */

import { defined } from "../../domain/defined.ts";
import type { Checksum } from "../../domain/text/checksum.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { alertKey } from "../../domain/troubles/table.ts";
import { bounded } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import type { AlertSeverity, TelemetryEvent } from "../../ports/telemetry.ts";
import { type Alert, type AlertFormat, type AlertMessage, formatAlert, formatOf, refusalIn } from "./alert-formats.ts";
import { type PostPorts, postJson } from "./post-json.ts";

export interface AlertSinkOptions extends PostPorts {
  readonly entropy: Pick<Entropy, "random">;
  readonly url: string;
  /** Format of the messages; if absent, chosen by the URL's host. */
  readonly format?: AlertFormat;
  readonly nodeId: string;
  readonly checksum?: Checksum;
  /** Time after an alert in which repeats are only counted. */
  readonly windowMs?: number;
  /** Called with the reason if an alert could not be sent. */
  readonly onLost?: (reason: string) => void;
}

interface Open {
  readonly alert: Alert;
  /** Number of repeats of the alert since its last message. */
  repeats: number;
  cancelTimer: () => void;
}

type AlertFields = Omit<Alert, "type">;

const WINDOW_MS = 300_000;
const QUEUE_LIMIT = 100;
const OPEN_LIMIT = 10_000;
const TRY_TIMEOUT_MS = 5_000;
const TRIES = 4;
const LAST_WORDS_MS = 1_000;

export function createAlertSink(options: AlertSinkOptions) {
  const { clock, windowMs = WINDOW_MS, onLost } = options;
  const open = new Map<string, Open>();
  /** Severity of each alert that was sent and not resolved. Most alerts are never resolved, so the oldest are dropped. */
  const unresolved = new Map<string, AlertSeverity>();
  const { enqueue, finish } = deliveryTo(options);
  let closed = false;

  const watch = (key: string, alert: Alert) => {
    const cancelTimer = clock.after(windowMs, () => {
      open.delete(key);
      if (watched.repeats === 0) return;
      watch(key, alert);
      enqueue(alert, watched.repeats);
    });
    const watched: Open = { alert, repeats: 0, cancelTimer };
    open.set(key, watched);
  };

  const take = (alert: Alert) => {
    const key = alertKey(alert);
    const before = open.get(key);
    if (before !== undefined) return void before.repeats++;
    if (open.size >= OPEN_LIMIT) return onLost?.("too many different alerts at once");
    watch(key, alert);
    unresolved.delete(key);
    const [oldest] = unresolved.keys();
    if (oldest !== undefined && unresolved.size >= OPEN_LIMIT) unresolved.delete(oldest);
    unresolved.set(key, alert.severity);
    enqueue(alert, 1);
  };

  /**
   * Sends at once that an alert is resolved, with the number of repeats so far. Does nothing if the alert itself was
   * not sent.
   */
  const end = (resolved: Extract<TelemetryEvent, { readonly type: "alert.resolved" }>) => {
    const key = alertKey(resolved);
    const before = open.get(key);
    before?.cancelTimer();
    open.delete(key);
    const severity = unresolved.get(key);
    unresolved.delete(key);
    if (severity !== undefined) enqueue({ ...resolved, severity }, Math.max(1, before?.repeats ?? 1), "resolved");
  };

  return {
    sink: (event: TelemetryEvent) => {
      if (closed) return;
      if (event.type === "alert") take(event);
      if (event.type === "alert.resolved") end(event);
    },
    /** Sends the queued alerts, within a time limit. */
    close: async () => {
      closed = true;
      for (const { alert, repeats, cancelTimer } of open.values()) {
        cancelTimer();
        if (repeats > 0) enqueue(alert, repeats);
      }
      open.clear();
      await finish();
    },
  };
}

/** A queue of messages to the webhook, which are sent one after another. */
function deliveryTo(options: AlertSinkOptions) {
  const { clock, url, format = formatOf(url), onLost } = options;
  const queue: AlertMessage[] = [];
  const stopping = new AbortController();
  let sending: Promise<void> | null = null;

  const send = async (message: AlertMessage) => {
    const body = JSON.stringify(formatAlert(format, message));
    const delivery = { url, headers: {}, body, timeoutMs: TRY_TIMEOUT_MS, tries: TRIES, signal: stopping.signal };
    const refusal = refusalIn(format, await postJson(options, delivery));
    if (refusal !== null) throw new Error(`the webhook ${refusal}`);
  };

  const sendAll = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      if (stopping.signal.aborted) onLost?.(`the node stopped before it had sent ${next.code}`);
      else await send(next).catch((error: unknown) => onLost?.(messageOf(error)));
    }
  };

  return {
    enqueue: (alert: AlertFields, count: number, status: AlertMessage["status"] = "firing") => {
      if (queue.length >= QUEUE_LIMIT) {
        queue.shift();
        onLost?.("the queue is full");
      }
      queue.push(toMessage(options, alert, { count, status }));
      sending ??= sendAll().finally(() => {
        sending = null;
      });
    },
    finish: async () => {
      await bounded(clock, sending ?? Promise.resolve(), clock.monotonicMs() + LAST_WORDS_MS);
      stopping.abort(new Error("the node has stopped"));
      await sending;
    },
  };
}

function toMessage(
  { clock, nodeId, checksum }: AlertSinkOptions,
  { severity, code, message: text, lane, txId, chainId = lane?.chainId, endpoint, subscriber }: AlertFields,
  { count, status }: Pick<AlertMessage, "count" | "status">,
): AlertMessage {
  const at = clock.now().toISOString();
  const signer = lane && (checksum?.(lane.signer) ?? lane.signer);
  const message = lane === undefined || signer === undefined ? text : text.replaceAll(lane.signer, signer);
  const place = { chainId, signer, txId, subscriber, endpoint: endpoint === undefined ? undefined : endpoint + 1 };
  return defined({ status, severity, code, message, nodeId, at, count, ...place });
}
