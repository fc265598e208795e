/**
 * Alerts about what lasts: said once while it does, and once more when it is over. Who forgets to say the second leaves people
 * with an alarm that nothing ends; who says the first at every look fills their night with it.
 */
import { type AlertSubject, alertKey } from "../domain/alerts.ts";
import { type LaneKey, laneKey } from "../domain/lane.ts";
import type { AlertSeverity, Telemetry } from "../ports/telemetry.ts";

type StandingAlert = AlertSubject & { readonly severity: AlertSeverity; readonly message: string };

export class StandingAlerts {
  private readonly telemetry: Telemetry;
  /** By lane, chain or node: which transaction is the head of an old line may change while the line is old. */
  private readonly standing = new Map<string, AlertSubject>();

  constructor(telemetry: Telemetry) {
    this.telemetry = telemetry;
  }

  get size(): number {
    return this.standing.size;
  }

  /** Once, however often it is found, until it is resolved. */
  raise(alert: StandingAlert): void {
    const key = standingKey(alert);
    if (this.standing.has(key)) return;
    const { severity: _, message: __, ...subject } = alert;
    this.standing.set(key, subject);
    this.telemetry.emit({ type: "alert", ...alert });
  }

  /** Nothing, where it was not said. */
  resolve(subject: AlertSubject, message: string): void {
    const said = this.standing.get(standingKey(subject));
    if (said === undefined) return;
    this.standing.delete(standingKey(subject));
    this.telemetry.emit({ type: "alert.resolved", ...said, message });
  }

  /** What this node said of lanes that it no longer holds is not its to watch: whoever holds them looks for itself. */
  leave(isHeld: (lane: LaneKey) => boolean): void {
    for (const subject of this.standing.values()) {
      if (subject.lane === undefined || isHeld(laneKey(subject.lane))) continue;
      this.resolve(subject, "this node no longer acts for the lane; its next owner says so if it goes on");
    }
  }
}

function standingKey({ txId: _, ...subject }: AlertSubject): string {
  return alertKey(subject);
}
