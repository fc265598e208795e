import type { TelemetryEvent } from "../../ports/telemetry.ts";

export const ALERT_FORMATS = ["json", "slack", "dingtalk", "feishu"] as const;
export type AlertFormat = (typeof ALERT_FORMATS)[number];

export type Alert = Extract<TelemetryEvent, { readonly type: "alert" }>;

/** One alert as it is told: what happened, where, and how often since it was last told. */
export interface AlertMessage extends Pick<Alert, "severity" | "code" | "message" | "txId"> {
  /** "resolved": what was told before under the same code, about the same thing, is over. */
  readonly status: "firing" | "resolved";
  readonly nodeId: string;
  /** ISO 8601. */
  readonly at: string;
  /** Repeats that were not told one by one are counted here. */
  readonly count: number;
  readonly chainId?: number;
  /** Its place in the configuration, from 1. */
  readonly endpoint?: number;
  readonly signer?: string;
}

const HOSTS: ReadonlyMap<string, AlertFormat> = new Map([
  ["hooks.slack.com", "slack"],
  ["oapi.dingtalk.com", "dingtalk"],
  ["open.feishu.cn", "feishu"],
  ["open.larksuite.com", "feishu"],
]);

/** The chat services have hosts of their own; any other host is given the plain form. */
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

/** DingTalk and Feishu say no with status 200; what it really was stands in the body. Null: it was taken. */
export function refusalIn(format: AlertFormat, answer: string): string | null {
  if (format !== "dingtalk" && format !== "feishu") return null;
  try {
    const { errcode, code = errcode, errmsg, msg = errmsg } = JSON.parse(answer) as Readonly<Record<string, unknown>>;
    return code === 0 || code === undefined ? null : `refused it: ${String(msg ?? code)}`;
  } catch {
    return null;
  }
}

function inWords({ status, severity, code, message, nodeId, count, chainId, signer, txId }: AlertMessage): string {
  const chain = chainId === undefined ? [] : [`chain ${chainId}`];
  const lane = signer === undefined ? chain : [`lane ${chainId}:${signer}`];
  const tx = txId === undefined ? [] : [`transaction ${txId}`];
  const times = count > 1 ? [`${count} times`] : [];
  return `[Fencepost ${status === "resolved" ? "OVER" : severity}] ${code}: ${message}\n${[...lane, ...tx, ...times, `node ${nodeId}`].join(" · ")}`;
}

/** Slack takes three characters for its own: https://api.slack.com/reference/surfaces/formatting#escaping */
function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
