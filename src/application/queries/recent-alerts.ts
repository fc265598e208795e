/**
 * Alerts that were raised a while ago, for people who were not listening. An alert is an event, and most have no end: it is
 * shown for a quarter of an hour after it was raised last. What still stands when that is over is told by what it is about
 * (a lane, a transaction, an endpoint), and those alerts are not repeated here.
 */
import type { AlertCode } from "../../domain/alerts.ts";
import { NOWHERE, type Trouble } from "../../domain/attention/troubles.ts";
import { laneKey } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";

const SHOWN_FOR_MS = 15 * 60_000;
/** A storm of alerts must not fill the memory; the oldest are dropped. */
const MOST = 200;

/** A state says it, for as long as it lasts; or it is good news. */
const TOLD_BY_STATE: ReadonlySet<AlertCode> = new Set<AlertCode>([
  "CHAIN_DISTRUSTED",
  "CHAIN_TRUSTED_AGAIN",
  "FEE_CEILING_REACHED",
  "GRAY_ZONE_ENTERED",
  "GRAY_ZONE_LEFT",
  "HEAD_OF_LINE_OLD",
  "HOLE_FILLED",
  "INSUFFICIENT_FUNDS",
  "KILLED",
  "LANE_AWAITS_OPERATOR",
  "LOW_BALANCE",
  "PENDING_DEEP",
  "PENDING_OLD",
  "POLICY_LIMIT_REACHED",
  "RPC_BEHIND",
  "RPC_DISAGREES",
  "RPC_ENDPOINT_DOWN",
  "RPC_WRONG_CHAIN",
  "SIGNER_AWAY",
  "SIGNER_BACK",
  "TX_STUCK",
]);

type Alert = Extract<TelemetryEvent, { readonly type: "alert" }>;

interface Raised {
  readonly trouble: Trouble;
  readonly lastMs: number;
}

export class RecentAlerts {
  private readonly clock: Pick<Clock, "now" | "monotonicMs">;
  private readonly raised = new Map<string, Raised>();

  constructor(clock: Pick<Clock, "now" | "monotonicMs">) {
    this.clock = clock;
  }

  hear(event: TelemetryEvent): void {
    if (event.type !== "alert" || TOLD_BY_STATE.has(event.code)) return;
    const trouble = troubleOf(event, this.clock.now());
    const before = this.raised.get(trouble.id);
    // Put at the end: the first of the map is the one that was raised least recently.
    this.raised.delete(trouble.id);
    const since = before?.trouble.since ?? trouble.since;
    this.raised.set(trouble.id, { trouble: { ...trouble, since }, lastMs: this.clock.monotonicMs() });
    const [oldest] = this.raised.keys();
    if (this.raised.size > MOST && oldest !== undefined) this.raised.delete(oldest);
  }

  firing(): readonly Trouble[] {
    const nowMs = this.clock.monotonicMs();
    for (const [id, { lastMs }] of this.raised) if (nowMs - lastMs > SHOWN_FOR_MS) this.raised.delete(id);
    return [...this.raised.values()].map(({ trouble }) => trouble);
  }
}

function troubleOf({ severity, code, message, lane, txId }: Alert, since: Date): Trouble {
  const about = txId ?? (lane === undefined ? "" : laneKey(lane));
  const sentence = /[.!?]$/.test(message) ? message : `${message}.`;
  const where = { ...NOWHERE, ...lane, ...(txId !== undefined && { txId }) };
  return { ...where, id: `alert:${code}:${about}`, severity, code, sentence: capital(sentence), since };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
