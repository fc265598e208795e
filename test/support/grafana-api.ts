import { readFileSync } from "node:fs";

interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly instant?: boolean;
}

export interface Panel {
  readonly title: string;
  readonly targets?: readonly Target[];
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

export function readDashboard(): Dashboard {
  return JSON.parse(readFileSync("deploy/grafana/fencepost.json", "utf8")) as Dashboard;
}

interface Frames {
  readonly error?: string;
  readonly frames?: readonly { readonly data: { readonly values: readonly (readonly unknown[])[] } }[];
}

export interface Answered {
  readonly panel: string;
  readonly expr: string;
  readonly error: string | null;
  readonly isEmpty: boolean;
}

/** A real Grafana through its HTTP API. `authorization` is null if it allows anonymous reads. */
export class Grafana {
  private readonly url: string;
  private readonly authorization: string | null;

  constructor(url: string, authorization: string | null = null) {
    this.url = url;
    this.authorization = authorization;
  }

  /** Reads a path of Grafana's API; null if the path does not exist (yet) or Grafana does not respond. */
  async get<T>(path: string): Promise<T | null> {
    const answer = await fetch(`${this.url}/api/${path}`, { headers: this.headers() }).catch(() => null);
    return answer?.ok === true ? ((await answer.json()) as T) : null;
  }

  /**
   * Sends every query of a panel as Grafana's page does, through Grafana to the data source. Variables in the query are
   * replaced first.
   */
  async ask({ title, targets = [] }: Panel): Promise<readonly Answered[]> {
    const queries = targets.map(({ refId, expr, instant = false }) => ({
      ...{ refId, expr: expr.replaceAll("$job", "fencepost"), instant, range: !instant },
      ...{ datasource: { type: "prometheus", uid: "prometheus" }, intervalMs: 15_000, maxDataPoints: 300 },
    }));
    const body = JSON.stringify({ queries, from: "now-5m", to: "now" });
    const headers = { ...this.headers(), "content-type": "application/json" };
    const answer = await fetch(`${this.url}/api/ds/query`, { method: "POST", headers, body });
    const { results = {} } = (await answer.json()) as { results?: Readonly<Record<string, Frames>> };
    return targets.map(({ refId, expr }) => {
      const { error, frames = [] } = results[refId] ?? { error: `no answer, HTTP ${answer.status}` };
      const isEmpty = !frames.some(({ data }) => data.values.some((column) => column.length > 0));
      return { panel: title, expr, error: error ?? null, isEmpty };
    });
  }

  private headers(): Record<string, string> {
    return this.authorization === null ? {} : { authorization: this.authorization };
  }
}
