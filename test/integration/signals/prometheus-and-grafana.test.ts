/**
 * Alert rules and dashboard in real programs: Prometheus scrapes a real node, and Grafana loads the dashboard. If one
 * is not installed, the test reports that clearly.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, describe, expect } from "vitest";
import { freePort } from "../../../src/main/dev/embedded/loopback-port.ts";
import { it } from "../../support/integration.ts";
import { installed, OtherProgram } from "../../support/other-program.ts";
import { askPrometheus, queryPrometheus } from "../../support/prometheus-api.ts";
import { transfer } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const PROMETHEUS = installed(["prometheus"]);
const GRAFANA = installed(["grafana", "server"], ["grafana-server"], ["/usr/share/grafana/bin/grafana", "server"]);
const DASHBOARD = "deploy/grafana/fencepost.json";

interface Panel {
  readonly targets?: readonly { readonly expr: string }[];
}
const { panels, ...dashboard } = JSON.parse(readFileSync(DASHBOARD, "utf8")) as { readonly panels: readonly Panel[] };

const running: OtherProgram[] = [];
const folders: string[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.end()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "fencepost-signals-"));
  folders.push(made);
  return made;
}

function sayMissing(program: string, untried: string): void {
  process.stderr.write(`\n!! ${program} is not installed: ${untried} was NOT tried in it.\n\n`);
}

async function startPrometheus(program: readonly string[], nodeUrl: string): Promise<string> {
  const place = folder();
  cpSync("deploy/prometheus/alerts.yml", join(place, "alerts.yml"));
  const scrape = `scrape_configs: [{ job_name: fencepost, static_configs: [{ targets: ["${new URL(nodeUrl).host}"] }] }]`;
  const times = "global: { scrape_interval: 1s, evaluation_interval: 1s }";
  writeFileSync(join(place, "prometheus.yml"), `${times}\nrule_files: [alerts.yml]\n${scrape}\n`);
  const address = `127.0.0.1:${await freePort()}`;
  const flags = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=${address}`];
  running.push(new OtherProgram(program, flags, place));
  const url = `http://${address}`;
  await waitUntil(async () => (await fetch(`${url}/-/ready`).catch(() => null))?.ok === true, "Prometheus is ready");
  return url;
}

/** Replaces menu variables as Grafana does. */
function filledIn(expr: string): string {
  return expr.replaceAll("$__rate_interval", "1m").replaceAll("$job", "fencepost");
}

describe("a real Prometheus", () => {
  it("fires an alert when the chain is down", async ({ simulated, nodes }) => {
    if (PROMETHEUS === null) return sayMissing("prometheus", "deploy/prometheus/alerts.yml");
    const node = await nodes.start(simulated.url);
    const url = await startPrometheus(PROMETHEUS, node.url);
    const sent = await node.client.send(transfer(0));
    await sent.final();
    const isUp = async (): Promise<boolean> =>
      (await queryPrometheus(url, 'fencepost_tx_state{state="CONFIRMED"} > 0')).length > 0;
    await waitUntil(isUp, "the outcome is scraped", { giveUpMs: 30_000 });
    const { groups } = (await askPrometheus(url, "rules")) as {
      groups: { rules: { name: string; lastError?: string }[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.filter(({ lastError = "" }) => lastError !== "")).toEqual([]);
    const exprs = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => filledIn(expr)));
    for (const expr of exprs) await queryPrometheus(url, expr);
    for (const name of [
      "fencepost_tx_outcome_total",
      "fencepost_chain_up",
      "fencepost_database_up",
      "fencepost_node_info",
    ]) {
      expect(await queryPrometheus(url, name), name).not.toEqual([]);
    }
    expect(await queryPrometheus(url, 'ALERTS{alertstate="firing"}')).toEqual([]);
    simulated.faults.inject({ kind: "hang" });
    const firing = await waitUntil(
      async () => {
        const names = (await queryPrometheus(url, 'ALERTS{alertstate="firing"}')).map(({ metric }) => metric.alertname);
        return names.includes("FencepostChainDown") ? names : null;
      },
      "the chain is said to be down",
      { giveUpMs: 120_000 },
    );
    expect(firing).toContain("FencepostChainDown");
  });
});

describe("a real Grafana", () => {
  it("loads the dashboard with all of its panels", async () => {
    if (GRAFANA === null) return sayMissing("grafana", DASHBOARD);
    const place = folder();
    for (const name of ["dashboards", "data", "provisioning/dashboards"])
      mkdirSync(join(place, name), { recursive: true });
    cpSync(resolve(DASHBOARD), join(place, "dashboards/fencepost.json"));
    const provider = readFileSync("deploy/grafana/provisioning/dashboards/fencepost.yml", "utf8");
    expect(provider).toContain("/var/lib/grafana/dashboards");
    writeFileSync(
      join(place, "provisioning/dashboards/f.yml"),
      provider.replace("/var/lib/grafana/dashboards", join(place, "dashboards")),
    );
    const port = await freePort();
    const settings = { "server.http_port": port, "server.http_addr": "127.0.0.1", "auth.anonymous.enabled": true };
    const paths = { "paths.data": join(place, "data"), "paths.provisioning": join(place, "provisioning") };
    const flags = Object.entries({ ...settings, ...paths }).map(([name, value]) => `cfg:default.${name}=${value}`);
    const program = new OtherProgram(GRAFANA, ["--homepath", "/usr/share/grafana", ...flags], place);
    running.push(program);
    const taken = await waitUntil(
      async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/api/dashboards/uid/fencepost`).catch(() => null);
        return answer?.ok === true ? ((await answer.json()) as { dashboard: { panels: readonly Panel[] } }) : null;
      },
      "Grafana has the dashboard",
      { giveUpMs: 60_000 },
    );
    expect(taken.dashboard.panels).toHaveLength(panels.length);
    expect(taken.dashboard).toMatchObject({ title: (dashboard as { title?: string }).title });
  });
});
