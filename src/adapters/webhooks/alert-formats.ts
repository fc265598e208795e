import type { TelemetryEvent } from "../../ports/telemetry.ts";

export const ALERT_FORMATS = ["json", "slack", "dingtalk", "feishu"] as const;
export type AlertFormat = (typeof ALERT_FORMATS)[number];

export type Alert = Extract<TelemetryEvent, { readonly type: "alert" }>;

/** An alert message: the event, what it is about, and the number of repeats since the last message. */
export interface AlertMessage extends Pick<Alert, "severity" | "code" | "message" | "txId"> {
  /** "firing": the alert begins. "resolved": an earlier alert with the same code about the same thing is over. */
  readonly status: "firing" | "resolved";
  readonly nodeId: string;
  /** Time of the alert in ISO 8601. */
  readonly at: string;
  /** Number of occurrences, including repeats that were not sent separately. */
  readonly count: number;
  readonly chainId?: number;
  /** Position of the endpoint in the configuration, from 1. */
  readonly endpoint?: number;
  /** Name of the subscriber. */
  readonly subscriber?: string;
  readonly signer?: string;
}

const HOSTS: ReadonlyMap<string, AlertFormat> = new Map([
  ["hooks.slack.com", "slack"],
  ["oapi.dingtalk.com", "dingtalk"],
  ["open.feishu.cn", "feishu"],
  ["open.larksuite.com", "feishu"],
]);

/** Message format for a webhook's URL. Chat services are recognised by host; any other host gets plain JSON. */
export function formatOf(url: string): AlertFormat {
  return HOSTS.get(new URL(url).hostname) ?? "json";
}

const BODIES: Readonly<Record<AlertFormat, (alert: AlertMessage) => unknown>> = {
  json: (alert) => alert,
  slack: (alert) => ({ text: escapeSlack(inWords(alert)) }),
  dingtalk: (alert) => ({ msgtype: "text", text: { content: inWords(alert) } }),
  feishu: (alert) => ({ msg_type: "text", content: { text: inWords(alert) } }),
};

export function formatAlert(format: AlertFormat, alert: AlertMessage): unknown {
  return BODIES[format](alert);
}

/**
 * Reads an error from a webhook's response; null if the alert was accepted. DingTalk and Feishu refuse with status 200
 * and an error in the body.
 */
export function refusalIn(format: AlertFormat, answer: string): string | null {
  if (format !== "dingtalk" && format !== "feishu") return null;
  try {
    const { errcode, code = errcode, errmsg, msg = errmsg } = JSON.parse(answer) as Readonly<Record<string, unknown>>;
    return code === 0 || code === undefined ? null : `refused the alert: ${String(msg ?? code)}`;
  } catch {
    return null;
  }
}

function inWords({ status, severity, code, message, nodeId, count, chainId, signer, txId }: AlertMessage) {
  const chain = chainId !== undefined && `chain ${chainId}`;
  const lane = signer === undefined ? chain : `lane ${chainId}:${signer}`;
  const words = [lane, txId && `transaction ${txId}`, count > 1 && `${count} times`, `node ${nodeId}`].filter(Boolean);
  return `[Fencepost ${status === "resolved" ? "OVER" : severity}] ${code}: ${message}\n${words.join(" · ")}`;
}

/** Escapes the three characters that Slack reserves: https://api.slack.com/reference/surfaces/formatting#escaping */
function escapeSlack(text: string) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
