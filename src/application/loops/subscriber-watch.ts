/**
 * Alerts about subscribers. Every node reads them from the database, and one of them raises the alerts, so that an
 * alert does not end with the node that delivered.
 */
import { alertingMember, type Member } from "../../domain/cluster/placement.ts";
import { SUBSCRIBER_CODES, type SubscriberTrouble, subscriberTrouble } from "../../domain/troubles/subscribers.ts";
import type { Ports } from "../../ports/ports.ts";
import type { SubscriberRecord } from "../../ports/subscriber-store.ts";
import { StandingAlerts } from "../standing-alerts.ts";

interface SubscriberWatchPorts extends Pick<Ports, "telemetry"> {
  readonly members: () => readonly Member[];
  readonly instanceId: () => string;
}

export class SubscriberWatch {
  private readonly ports;
  private readonly alerts;
  /** Names of the subscribers with an open alert. */
  private alerted: ReadonlySet<string> = new Set();

  private troubles: readonly SubscriberTrouble[] = [];

  constructor(ports: SubscriberWatchPorts) {
    this.ports = ports;
    this.alerts = new StandingAlerts(ports.telemetry);
  }

  /** Troubles of the subscribers at the last look, except of those that an operator paused. */
  get found(): readonly SubscriberTrouble[] {
    return this.troubles.filter(({ alerts }) => alerts);
  }

  look(subscribers: readonly SubscriberRecord[]): void {
    const { members, instanceId } = this.ports;
    const isAlerting = alertingMember(members())?.instanceId === instanceId();
    this.troubles = subscribers.flatMap((each) => subscriberTrouble(each) ?? []);
    const found = new Map<string, SubscriberTrouble>(this.troubles.map((each) => [each.subscriber, each]));
    for (const subscriber of new Set([...this.alerted, ...found.keys()])) {
      const trouble = found.get(subscriber);
      for (const code of SUBSCRIBER_CODES) {
        const lasts = trouble?.code === code && trouble.alerts;
        const message =
          trouble?.code === code ? trouble.text : `the subscriber ${subscriber} has no such trouble any more`;
        this.alerts.judge({ code, subscriber, message }, lasts && isAlerting, !lasts);
      }
    }
    this.alerted = new Set(found.keys());
  }
}
