/** Checks alert rules and dashboard: an alert on a series that does not exist never fires. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createMetrics } from "../../src/adapters/system/metrics.ts";
import { parseExposition } from "../support/prometheus-text.ts";

const RULES = "deploy/prometheus/alerts.yml";
const RULE_TESTS = "deploy/prometheus/tests/alerts.test.yml";
const DASHBOARD = "deploy/grafana/fencepost.json";
/** Grafana's syntax for the data source selected in the dashboard's menu. */
const CHOSEN = ["$", "{datasource}"].join("");
const text = (path: string): string => readFileSync(path, "utf8");

/** Series that users' own rules and dashboards may rely on, besides those in deploy/. */
const PUBLIC = `lease_acquire_total lease_fenced_total lease_held writer_queue_depth writer_batch_size tx_create_total
  tx_submit_total tx_state receipt_check_total receipt_backlog confirmations_new_fork_total pending_oldest_age_seconds
  pending_depth resubmit_total stuck_total head_of_line_blocked_total stuck_resolution_total gray_zone_total
  nonce_allocated_total nonce_recycled_total nonce_reserved nonce_drift reconcile_total forward_total signer_balance_wei
  rpc_requests_total rpc_duration_seconds http_request_duration_seconds time_to_broadcast_seconds time_to_finality_seconds`
  .split(/\s+/)
  .map((name) => `fencepost_${name}`);

async function series(): Promise<ReadonlySet<string>> {
  const { types } = parseExposition((await createMetrics().expose()).body);
  const parts = (name: string) => ["bucket", "sum", "count"].map((part) => `${name}_${part}`);
  return new Set([...types].flatMap(([name, type]) => (type === "histogram" ? [name, ...parts(name)] : [name])));
}

const named = (content: string): readonly string[] => [
  ...new Set(content.match(/\b(fencepost|process|nodejs)_[a-z_]+[a-z]\b/g) ?? []),
];

interface Rule {
  readonly name: string;
  readonly body: string;
}

function rules(): readonly Rule[] {
  return text(RULES)
    .split(/^ {6}- alert: /m)
    .slice(1)
    .map((part) => ({ name: part.slice(0, part.indexOf("\n")), body: part }));
}

describe("the metrics registry", () => {
  it("contains every metric name that is documented as public", async () => {
    const known = await series();
    expect(PUBLIC.filter((name) => !known.has(name))).toEqual([]);
  });
});

describe.each([RULES, RULE_TESTS, DASHBOARD, "docs/metrics.md", "docs/operations/alerts.md"])("%s", (path) => {
  // protects [Signals] src/adapters/system/metrics.ts
  it("names only metric series that a node exports", async () => {
    const known = await series();
    expect(named(text(path)).filter((name) => !known.has(name))).toEqual([]);
  });
});

describe("each alert rule", () => {
  it.each(rules().map((rule) => [rule.name, rule] as const))(
    "%s has a severity, a summary, a description and an existing runbook",
    (name, { body }) => {
      expect(name).toMatch(/^Fencepost[A-Z]\w+$/);
      expect(body).toMatch(/^ {10}severity: (WARNING|ERROR|CRITICAL)$/m);
      expect(body).toMatch(/^ {10}summary: \S/m);
      expect(body).toMatch(/^ {10}description: \S/m);
      const [, page = "", anchor] = body.match(/^ {10}runbook: ([\w./-]+)(?:#([\w-]+))?$/m) ?? [];
      const headings = [...text(page).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
        title.toLowerCase().replaceAll(" ", "-"),
      );
      if (anchor !== undefined) expect(headings).toContain(anchor);
    },
  );

  it("has a promtool test in which it fires", () => {
    const tests = text(RULE_TESTS);
    const untried = rules().filter(({ name }) => !tests.includes(`alertname="${name}",alertstate="firing",severity`));
    expect(untried.map(({ name }) => name)).toEqual([]);
  });
});

describe("the Grafana dashboard", () => {
  interface Panel {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
  }
  const { panels } = JSON.parse(text(DASHBOARD)) as { readonly panels: readonly Panel[] };

  it("has its rows in order, from `Needs attention` to `Nodes`", () => {
    const rows = panels.filter(({ type }) => type === "row").map(({ title }) => title);
    expect(rows).toEqual(["Needs attention", "Flow", "Lanes", "Outcomes and messages", "Chain", "Database", "Nodes"]);
  });

  it("queries only the selected Prometheus and job", () => {
    const targets = panels.flatMap(({ targets = [] }) => targets);
    expect(targets.length).toBeGreaterThan(40);
    expect([...new Set(targets.map(({ datasource }) => datasource.uid))]).toEqual([CHOSEN]);
    const selectors = targets.flatMap(({ expr }) => expr.match(/\b(fencepost|process|nodejs)_\w+(\{[^}]*\})?/g) ?? []);
    expect(selectors.filter((each) => !each.includes('job=~"$job"'))).toEqual([]);
  });

  it("is provisioned into a folder whose name differs from its title, as Grafana requires", () => {
    const { title } = JSON.parse(text(DASHBOARD)) as { readonly title: string };
    const [, folder = ""] =
      /^ +folder: (.+)$/m.exec(text("deploy/grafana/provisioning/dashboards/fencepost.yml")) ?? [];
    expect(folder.toLowerCase()).not.toBe(title.toLowerCase());
  });

  it("has no duplicate and no overlapping panels", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)}:${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  });
});

describe("promtool", () => {
  const isInstalled = spawnSync("promtool", ["--version"]).error === undefined;
  const run = (...args: readonly string[]) => spawnSync("promtool", [...args], { encoding: "utf8" });

  it("accepts the alert rules and passes their tests, if it is installed", () => {
    if (!isInstalled) {
      process.stderr.write(`\n!! promtool is not installed: ${RULES} was NOT checked, ${RULE_TESTS} did NOT run.\n`);
      process.stderr.write("!! Debian and Ubuntu: apt-get install prometheus\n\n");
      return;
    }
    for (const [command, path] of [
      ["check", RULES],
      ["test", RULE_TESTS],
    ] as const) {
      const { status, stdout, stderr } = run(command, "rules", path);
      expect(status, `${stdout}${stderr}`).toBe(0);
    }
  });
});
