/**
 * What each node alone knows of what needs a person, told to the others through the database, so that any of them can show what
 * all of them know. Written only where it has changed; nothing is decided by it. A crash leaves a report of an instance that
 * is over, which nobody reads.
 */
import type { Trouble } from "../../domain/attention/troubles.ts";
import type { Ports } from "../../ports/ports.ts";
import type { SightStore } from "../../ports/sight-store.ts";
import { type FindingPorts, nodeFindings } from "./node-findings.ts";
import type { RecentAlerts } from "./recent-alerts.ts";

export interface NodeReportPorts extends FindingPorts, Pick<Ports, "clock"> {
  readonly store: Pick<SightStore, "report" | "reports">;
  readonly nodeId: string;
  readonly instanceId: () => string;
  /** Absent: nobody listens to alerts here. */
  readonly alerts?: Pick<RecentAlerts, "shown">;
}

const EVERY_MS = 5_000;
/** What is beyond is in the logs, and would only hide the worst. */
const MOST = 200;

export class NodeReports {
  private readonly ports: NodeReportPorts;
  /** What was last written, and as whom. */
  private written = "";
  private nextMs = 0;
  /** Whose report the next one replaces; null: there is none of this process. */
  private self: string | null = null;

  constructor(ports: NodeReportPorts) {
    this.ports = ports;
  }

  /** Called with the beat. The database is not waited for: where it does not answer, the next look tries again. */
  look(): void {
    const nowMs = this.ports.clock.monotonicMs();
    if (nowMs < this.nextMs) return;
    this.nextMs = nowMs + EVERY_MS;
    const report = { instanceId: this.ports.instanceId(), findings: this.own() };
    const text = JSON.stringify(report);
    // Nothing was told under this name, and nothing is to be told.
    const isSilence = report.findings.length === 0 && this.self !== report.instanceId;
    if (text === this.written || isSilence) return;
    const before = this.written;
    this.written = text;
    this.self = report.instanceId;
    this.ports.store.report(report).catch(() => {
      this.written = before;
    });
  }

  /** Of all nodes; of this one as of now. */
  async all(): Promise<readonly Trouble[]> {
    const others = (await this.ports.store.reports()).filter(({ instanceId }) => instanceId !== this.self);
    return [...this.own(), ...others.flatMap(({ findings }) => findings)];
  }

  private own(): readonly Trouble[] {
    const { nodeId, alerts } = this.ports;
    const found = [...nodeFindings(this.ports), ...(alerts?.shown() ?? [])];
    return found.slice(0, MOST).map((trouble) => ({ ...trouble, nodeId }));
  }
}
