/**
 * Alerts about lasting conditions: raised once while the condition lasts, and resolved once when it is over. Those that
 * only an event ends are renewed with new numbers whenever the condition is found again.
 */

import { type LaneKey, laneKey } from "../domain/lane.ts";
import { type AlertSubject, alertKey, rowOf } from "../domain/troubles/table.ts";
import type { AlertSeverity, Telemetry } from "../ports/telemetry.ts";

const LEFT = "this node no longer acts for the lane; its next owner says so if it goes on";

type StandingAlert = AlertSubject & { readonly severity: AlertSeverity; readonly message: string };

export class StandingAlerts {
  private readonly telemetry;
  /**
   * Open alerts, keyed by lane, chain or node, not by transaction. An alert about an old lane must stay one alert while
   * the lane's lowest open transaction changes.
   */
  private readonly standing = new Map<string, AlertSubject>();

  constructor(telemetry: Telemetry) {
    this.telemetry = telemetry;
  }

  get size(): number {
    return this.standing.size;
  }

  /** True if the alert was raised and is not resolved. */
  has(subject: AlertSubject): boolean {
    return this.standing.size > 0 && this.standing.has(standingKey(subject));
  }

  /** Raises an alert once, however often the condition is found, until it is resolved. */
  raise(alert: StandingAlert): void {
    const key = standingKey(alert);
    const known = this.standing.get(key);
    const { severity: _, message, ...subject } = alert;
    if (known === undefined) {
      this.standing.set(key, subject);
      this.telemetry.emit({ type: "alert", ...alert });
    } else if (rowOf(alert.code).ends === "said") {
      this.telemetry.emit({ type: "alert.renewed", ...known, message });
    }
  }

  /**
   * Raises the alert, with the severity of its code, if the condition `lasts`. Resolves it if `isOver`. If neither is
   * true, the alert stays open or closed, as before.
   */
  judge(alert: AlertSubject & { readonly message: string }, lasts: boolean, isOver = !lasts): void {
    if (lasts) this.raise({ ...alert, severity: rowOf(alert.code).severity ?? "WARNING" });
    else if (isOver) this.resolve(alert, alert.message);
  }

  /** Resolves an alert; does nothing if it was not raised. */
  resolve(subject: AlertSubject, message: string): void {
    const said = this.standing.get(standingKey(subject));
    if (said === undefined) return;
    this.standing.delete(standingKey(subject));
    this.telemetry.emit({ type: "alert.resolved", ...said, message });
  }

  /**
   * Resolves alerts about lanes that are not among those that `isKept` names: by default the lanes that this node owns,
   * because the next owner of a lane makes its own checks.
   */
  leave(isKept: (lane: LaneKey) => boolean, message = LEFT): void {
    for (const subject of this.standing.values()) {
      if (subject.lane === undefined || isKept(laneKey(subject.lane))) continue;
      this.resolve(subject, message);
    }
  }
}

function standingKey({ txId: _, ...subject }: AlertSubject) {
  return alertKey(subject);
}
