/**
 * Rows of alerts that no state shows. An alert that lasts is shown until it is resolved, with the figures of the last look; one of a
 * moment is shown as past, for a quarter of an hour after it was last raised. Alerts that end with a state have rows of their own.
 */
import { keepNewest } from "../../domain/keep-newest.ts";
import { type AlertSubject, alertKey } from "../../domain/troubles/alerts.ts";
import { NOWHERE, type Trouble } from "../../domain/troubles/rows.ts";
import { TROUBLES } from "../../domain/troubles/table.ts";
import { sentence } from "../../domain/troubles/words.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";

const SHOWN_FOR_MS = 15 * 60_000;
/** Of each kind: a storm of alerts must not fill the memory; the oldest are dropped. */
const MOST = 200;

type Alert = Extract<TelemetryEvent, { readonly type: "alert" }>;

export class RecentAlerts {
  private readonly clock;
  private readonly standing = new Map<string, Trouble>();
  private readonly past = new Map<string, { readonly trouble: Trouble; readonly lastMs: number }>();

  constructor(clock: Pick<Clock, "now" | "monotonicMs">) {
    this.clock = clock;
  }

  hear(event: TelemetryEvent): void {
    if (event.type === "alert.resolved") this.standing.delete(idOf(event));
    if (event.type === "alert.renewed") {
      const known = this.standing.get(idOf(event));
      if (known !== undefined) this.standing.set(known.id, { ...known, ...figuresOf(event.message, this.clock.now()) });
    }
    if (event.type !== "alert") return;
    const end = TROUBLES[event.code].ends;
    const trouble = troubleOf(event, this.clock.now());
    if (end === "said") {
      const since = this.standing.get(trouble.id)?.since ?? trouble.since;
      keepNewest(this.standing, trouble.id, { ...trouble, since }, MOST);
    }
    const past = { trouble: { ...trouble, over: true }, lastMs: this.clock.monotonicMs() };
    if (end === "moment") keepNewest(this.past, trouble.id, past, MOST);
  }

  /** What lasts first: where there is room for some only, those are told. */
  shown(): readonly Trouble[] {
    const nowMs = this.clock.monotonicMs();
    for (const [id, { lastMs }] of this.past) if (nowMs - lastMs > SHOWN_FOR_MS) this.past.delete(id);
    return [...this.standing.values(), ...[...this.past.values()].map(({ trouble }) => trouble).reverse()];
  }
}

const idOf = (subject: AlertSubject) => `alert:${alertKey(subject)}`;

function troubleOf(alert: Alert, since: Date): Trouble {
  const { severity, code, message, lane, txId, chainId } = alert;
  const where = { ...NOWHERE, ...(chainId !== undefined && { chainId }), ...lane, ...(txId !== undefined && { txId }) };
  return { ...where, id: idOf(alert), severity, code, ...figuresOf(message, since), since };
}

function figuresOf(message: string, asOf: Date): Pick<Trouble, "sentence" | "asOf"> {
  return { sentence: sentence(message.replace(/[.]$/, "")), asOf };
}
