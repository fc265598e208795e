/**
 * Sends alerts to a webhook, for installations without Alertmanager. An alert is sent once per window. If it repeats,
 * it is sent again with a count, and once more when it is resolved. It cannot block or crash the node: the queue has a
 * limit, and a webhook that is away costs alerts, which the log still has.
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
  /** Absent: chosen by the URL's host. */
  readonly format?: AlertFormat;
  readonly nodeId: string;
  readonly checksum?: Checksum;
  /** Time in which repeats are only counted. */
  readonly windowMs?: number;
  /** Called with the reason if an alert could not be sent. */
  readonly onLost?: (reason: string) => void;
}

interface Open {
  readonly alert: Alert;
  /** Repeats since the last message. */
  repeats: number;
  cancelTimer: () => void;
}

type Resolved = Extract<TelemetryEvent, { readonly type: "alert.resolved" }>;
type AlertFields = Omit<Alert, "type">;

const WINDOW_MS = 300_000;
const QUEUE_LIMIT = 100;
const OPEN_LIMIT = 10_000;
const TRY_TIMEOUT_MS = 5_000;
const TRIES = 4;
const LAST_WORDS_MS = 1_000;

export function createAlertSink(options: AlertSinkOptions): Pick<AlertSink, "sink" | "close"> {
  return new AlertSink(options);
}

class AlertSink {
  private readonly options: AlertSinkOptions;
  private readonly format: AlertFormat;
  private readonly open = new Map<string, Open>();
  /**
   * Severity of each alert that was sent and not resolved. Most alerts are never resolved, so the oldest are dropped.
   */
  private readonly unresolved = new Map<string, AlertSeverity>();
  private readonly queue: AlertMessage[] = [];
  private readonly stopping = new AbortController();
  private sending: Promise<void> | null = null;
  private closed = false;

  constructor(options: AlertSinkOptions) {
    this.options = options;
    this.format = options.format ?? formatOf(options.url);
  }

  readonly sink = (event: TelemetryEvent): void => {
    if (this.closed) return;
    if (event.type === "alert") this.take(event);
    if (event.type === "alert.resolved") this.end(event);
  };

  /** Sends the resolution at once, with the repeats so far. Only for an alert that was sent. */
  private end(resolved: Resolved): void {
    const key = alertKey(resolved);
    const before = this.open.get(key);
    before?.cancelTimer();
    this.open.delete(key);
    const severity = this.unresolved.get(key);
    this.unresolved.delete(key);
    if (severity !== undefined) this.enqueue({ ...resolved, severity }, Math.max(1, before?.repeats ?? 1), "resolved");
  }

  private take(alert: Alert): void {
    const key = alertKey(alert);
    const before = this.open.get(key);
    if (before !== undefined) {
      before.repeats++;
      return;
    }
    if (this.open.size >= OPEN_LIMIT) {
      this.options.onLost?.("too many different alerts at once");
      return;
    }
    this.watch(key, alert);
    this.unresolved.delete(key);
    const [oldest] = this.unresolved.keys();
    if (oldest !== undefined && this.unresolved.size >= OPEN_LIMIT) this.unresolved.delete(oldest);
    this.unresolved.set(key, alert.severity);
    this.enqueue(alert, 1);
  }

  /** Sends what is queued, within a time limit. */
  async close(): Promise<void> {
    this.closed = true;
    for (const [key, { alert, repeats, cancelTimer }] of this.open) {
      cancelTimer();
      this.open.delete(key);
      if (repeats > 0) this.enqueue(alert, repeats);
    }
    const { clock } = this.options;
    await bounded(clock, this.sending ?? Promise.resolve(), clock.monotonicMs() + LAST_WORDS_MS);
    this.stopping.abort(new Error("the node has stopped"));
    await this.sending;
  }

  private watch(key: string, alert: Alert): void {
    const windowMs = this.options.windowMs ?? WINDOW_MS;
    const cancelTimer = this.options.clock.after(windowMs, () => this.endWindow(key));
    this.open.set(key, { alert, repeats: 0, cancelTimer });
  }

  private endWindow(key: string): void {
    const over = this.open.get(key);
    this.open.delete(key);
    if (over === undefined || over.repeats === 0) return;
    this.watch(key, over.alert);
    this.enqueue(over.alert, over.repeats);
  }

  private enqueue(alert: AlertFields, count: number, status: AlertMessage["status"] = "firing"): void {
    if (this.queue.length >= QUEUE_LIMIT) {
      this.queue.shift();
      this.options.onLost?.("the queue is full");
    }
    this.queue.push(this.toMessage(alert, count, status));
    this.sending ??= this.sendAll().finally(() => {
      this.sending = null;
    });
  }

  private async sendAll(): Promise<void> {
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) {
      if (this.stopping.signal.aborted) {
        this.options.onLost?.(`the node stopped before it had sent ${next.code}`);
        continue;
      }
      try {
        await this.send(next);
      } catch (error) {
        this.options.onLost?.(messageOf(error));
      }
    }
  }

  private async send(message: AlertMessage): Promise<void> {
    const body = JSON.stringify(formatAlert(this.format, message));
    const { url } = this.options;
    const { signal } = this.stopping;
    const delivery = { url, headers: {}, body, timeoutMs: TRY_TIMEOUT_MS, tries: TRIES, signal };
    const refusal = refusalIn(this.format, await postJson(this.options, delivery));
    if (refusal !== null) throw new Error(`the webhook ${refusal}`);
  }

  private toMessage(alert: AlertFields, count: number, status: AlertMessage["status"]): AlertMessage {
    const { severity, code, message, lane, txId, chainId = lane?.chainId, endpoint } = alert;
    const { clock, nodeId, checksum } = this.options;
    const at = clock.now().toISOString();
    const signer = lane && (checksum?.(lane.signer) ?? lane.signer);
    const place = { chainId, signer, txId, endpoint: endpoint === undefined ? undefined : endpoint + 1 };
    return defined({ status, severity, code, message, nodeId, at, count, ...place });
  }
}
