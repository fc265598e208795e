/**
 * What each node alone knows of what needs a person, written to the database so that any node can show it. Written only if
 * it has changed; nothing is decided by it. The report of a node that ended is kept for a while: the next owner of its lanes takes
 * from it since when their troubles last.
 */
import type { Trouble } from "../../domain/troubles/rows.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { nodeFindings } from "./node-findings.ts";
import type { RecentAlerts } from "./recent-alerts.ts";
import { silent } from "./silent.ts";

interface NodeReportPorts extends Pick<CallPorts, "clock" | "store" | "nodeId" | "chains" | "lanesOf"> {
  readonly instanceId: () => string;
  /** Absent: nobody listens to alerts here. */
  readonly alerts?: Pick<RecentAlerts, "shown">;
}

const EVERY_MS = 5_000;
/** The others are in the logs, and would only hide the worst. */
const MOST = 200;

export class NodeReports {
  private readonly ports;
  /** What was last written, and as whom. */
  private written = "";
  private nextMs = 0;
  /** Whose report the next one replaces; null: there is none of this process. */
  private self: string | null = null;
  /** The first moment of each row that lasts, by its id: facts in memory are found anew in each term. */
  private first: ReadonlyMap<string, Date | null> = new Map();

  constructor(ports: NodeReportPorts) {
    this.ports = ports;
  }

  /** Called with the beat, which does not wait for the database: if it does not answer, the next look tries again. */
  look(): void {
    const nowMs = this.ports.clock.monotonicMs();
    if (nowMs < this.nextMs) return;
    this.nextMs = nowMs + EVERY_MS;
    const report = async () => {
      const found = await this.own();
      this.readBalances(found);
      this.write(found);
    };
    void silent(report());
  }

  /** Of all nodes; of this one as of now. */
  async all(): Promise<readonly Trouble[]> {
    const [own, reports] = await Promise.all([this.own(), this.ports.store.reports()]);
    return [...own, ...reports.flatMap(({ instanceId, findings }) => (instanceId === this.self ? [] : findings))];
  }

  private write(findings: readonly Trouble[]) {
    const instanceId = this.ports.instanceId();
    const text = JSON.stringify([instanceId, findings.map(({ asOf: _, ...lasting }) => lasting)]);
    // Nothing was reported under this name, and there is nothing to report.
    const isSilence = findings.length === 0 && this.self !== instanceId;
    if (text === this.written || isSilence) return;
    const before = this.written;
    this.written = text;
    this.self = instanceId;
    this.ports.store.report({ instanceId, findings }).catch(() => {
      this.written = before;
    });
  }

  /** Each row since its first moment, as this node or one that reported the same before it saw it. */
  private async own(): Promise<readonly Trouble[]> {
    const { nodeId, alerts, store } = this.ports;
    const found = [...nodeFindings(this.ports), ...(alerts?.shown() ?? [])].slice(0, MOST);
    const isNew = found.some(({ id }) => !this.first.has(id));
    const reports = isNew ? await Promise.all([store.endedReports(), store.reports()]) : [];
    const before = new Map(reports.flat().flatMap(({ findings }) => findings.map(({ id, since }) => [id, since])));
    const dated = found.map((each) => {
      const known = [this.first.get(each.id), before.get(each.id), each.since].flatMap((at) => at?.getTime() ?? []);
      return { ...each, nodeId, ...(known.length > 0 && !each.over && { since: new Date(Math.min(...known)) }) };
    });
    this.first = new Map(dated.map(({ id, since }) => [id, since]));
    return dated;
  }

  /** Advice depends on whether the signer can pay: its owner reads that while a transaction of it is in trouble. */
  private readBalances(found: readonly Trouble[]) {
    for (const { facts, txId, chainId, signer } of found) {
      const context = this.ports.chains.get(chainId ?? 0);
      if (facts === undefined || txId === null || signer === null || context?.reachable !== true) continue;
      void silent(context.balance(signer));
    }
  }
}
