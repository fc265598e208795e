/** Runs all of deploy/compose.yml on a real Docker daemon: three nodes, their database, a chain, and the monitoring. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { createClient } from "../../src/client/index.ts";
import { readText } from "../architecture/tree.ts";
import { ComposeStack } from "../support/compose-stack.ts";
import { baseImages, copyTrackedFiles, docker, missingFor, tryDocker } from "../support/docker.ts";
import { type Dashboard, Grafana, readDashboard } from "../support/grafana-api.ts";
import { askPrometheus, queryPrometheus } from "../support/prometheus-api.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 900_000 });

const TAG = `test-${process.pid}`;
const NODES = ["node-1", "node-2", "node-3"];
const { services } = parse(readText("deploy/compose.yml"), { merge: true }) as {
  readonly services: Readonly<Record<string, { readonly image: string }>>;
};
const image = (service: string) => services[service]?.image ?? "";
/** Panels whose query has no result while all is well: a counter exists only after its first event. */
const QUIET = new Set([
  ...["Alerts that fire", "Alerts that nodes raised in the last hour", "Refused", "Submissions"],
  ...["Decisions about stuck ones", "Gray zone", "Drift", "Leases"],
]);

/** The reason why the whole test is skipped on this machine; null if everything is available. */
async function missingHere(): Promise<string | null> {
  if ((await tryDocker("compose", "version")).code !== 0) return "no docker compose is installed";
  return missingFor([...baseImages(), ...["postgres", "prometheus", "chain"].map(image)]);
}
const missing = await missingHere();
const withoutGrafana = missing ?? (await missingFor([image("grafana")]));
if (missing !== null) process.stderr.write(`\n!! ${missing}: deploy/compose.yml was NOT started.\n\n`);
else if (withoutGrafana !== null)
  process.stderr.write(`\n!! ${withoutGrafana}: compose was tried WITHOUT Grafana.\n\n`);

describe("the cluster started from compose.yml", () => {
  let checkout: TemporaryDirectory;
  let stack: ComposeStack;

  beforeEach(({ skip }) => skip(missing !== null, `${missing}: nothing was started`));
  beforeAll(async () => {
    if (missing !== null) return;
    checkout = await makeTemporaryDirectory();
    await copyTrackedFiles(checkout.path);
    const ports = { "node-1": 3000, "node-2": 3000, "node-3": 3000, prometheus: 9090, grafana: 3000 };
    stack = await ComposeStack.prepare(checkout.path, {
      ...{ project: `fencepost-test-${process.pid}`, imageTag: TAG, ports, nodes: NODES },
      // A node first reads balances when it reconciles, so make reconciliation frequent.
      variables: { FENCEPOST_RECONCILIATION_INTERVAL: "5s" },
    });
    const watching = withoutGrafana === null ? ["prometheus", "grafana"] : ["prometheus"];
    await stack.up([...NODES, "postgres", "chain", ...watching]).catch(async (error) => {
      throw new Error(`${error}\n${await stack.logs()}`);
    });
  });
  afterAll(async () => {
    await stack?.down();
    await tryDocker("image", "rm", "--force", `fencepost:${TAG}`);
    await checkout?.remove();
  });

  async function clientOfAll() {
    const url = await Promise.all(NODES.map((name) => stack.urlOf(name, 3000)));
    const apiKey = /^app:([^,]+)/.exec(stack.secret("api-keys"))?.[1] ?? "";
    return createClient({ url, apiKey });
  }

  it("has a Prometheus that scrapes every node and has loaded the alert rules", async () => {
    const url = await stack.urlOf("prometheus", 9090);
    interface Targets {
      readonly activeTargets: readonly { readonly health: string; readonly labels: { readonly instance: string } }[];
    }
    const up = await waitUntil(
      async () => {
        const { activeTargets } = (await askPrometheus(url, "targets")) as Targets;
        const well = activeTargets.filter(({ health }) => health === "up");
        return well.length === NODES.length ? well.map(({ labels }) => labels.instance).sort() : null;
      },
      "all three are scraped",
      { giveUpMs: 90_000, everyMs: 500 },
    );
    expect(up).toEqual(NODES.map((name) => `${name}:3000`));
    const { groups } = (await askPrometheus(url, "rules")) as {
      groups: { rules: { name: string; lastError?: string }[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.filter(({ lastError = "" }) => lastError !== "")).toEqual([]);
    expect((await queryPrometheus(url, "fencepost_node_info")).length).toBe(NODES.length);
  });

  it("loses and duplicates nothing when docker kill ends the sending node", async () => {
    const client = await clientOfAll();
    const owner = async () => (await client.leases())[0]?.nodeId ?? null;
    const first = await waitUntil(owner, "a node has the lane");
    const before = await Promise.all(range(20).map((index) => client.send(transfer(index))));
    const killed = await stack.containerOf(first);
    await Promise.all([
      docker("kill", killed),
      ...range(20).map((index) => client.send(transfer(20 + index)).then((sent) => before.push(sent))),
    ]);
    const outcomes = await Promise.all(before.map(({ txId }) => client.waitFor(txId, { timeoutMs: 200_000 })));
    expect(outcomes.filter(({ state }) => state !== "CONFIRMED")).toEqual([]);
    const nonces = outcomes.map(({ nonce }) => Number(nonce)).sort((a, b) => a - b);
    expect(nonces).toEqual(range(40).map((index) => index + Number(nonces[0])));
    expect(await owner()).not.toBe(first);
    expect(await docker("inspect", "--format={{.State.Running}}", killed), "it stayed away").toBe("false");

    const url = await stack.urlOf("prometheus", 9090);
    await waitUntil(
      async () => (await queryPrometheus(url, `up{instance="${first}:3000"} == 0`)).length === 1,
      "Prometheus has seen it",
      { giveUpMs: 60_000, everyMs: 500 },
    );
    await docker("start", killed);
    const isHealthy = async () => (await docker("inspect", "--format={{.State.Health.Status}}", killed)) === "healthy";
    await waitUntil(isHealthy, "it is back", { giveUpMs: 120_000, everyMs: 500 });
    expect((await client.nodes()).length).toBeGreaterThanOrEqual(NODES.length);
  });

  it("has a Grafana with the dashboard, in which each panel's query has a result", async ({ skip }) => {
    skip(withoutGrafana !== null, `${withoutGrafana}: Grafana was not tried`);
    const client = await clientOfAll();
    await client.waitFor((await client.send(transfer(0, "shown"))).txId);
    const basic = Buffer.from(`admin:${stack.secret("grafana-password")}`).toString("base64");
    const grafana = new Grafana(await stack.urlOf("grafana", 3000), `Basic ${basic}`);
    const source = await grafana.get<{ status: string }>("datasources/uid/prometheus/health");
    expect(source, "it reaches Prometheus").toMatchObject({ status: "OK" });
    interface Taken {
      readonly dashboard: Dashboard;
      readonly meta: { readonly provisionedExternalId: string };
    }
    const taken = await waitUntil(() => grafana.get<Taken>("dashboards/uid/fencepost"), "it has the dashboard");
    const { panels, title } = readDashboard();
    expect(taken).toMatchObject({ dashboard: { title }, meta: { provisionedExternalId: "fencepost.json" } });
    expect(taken.dashboard.panels).toHaveLength(panels.length);
    await waitUntil(
      async () => {
        const answers = (await Promise.all(taken.dashboard.panels.map((panel) => grafana.ask(panel)))).flat();
        expect(answers.length).toBeGreaterThan(60);
        expect(answers.filter(({ error }) => error !== null)).toEqual([]);
        return answers.every(({ panel, isEmpty }) => !isEmpty || QUIET.has(panel));
      },
      "every panel that is about more than troubles shows something",
      { giveUpMs: 120_000, everyMs: 2_000 },
    );
  });

  it("stops within the grace period on docker stop", async () => {
    const containers = await Promise.all(NODES.map((name) => stack.containerOf(name)));
    await docker("stop", ...containers);
    const codes = await docker("inspect", "--format={{.State.ExitCode}}", ...containers);
    expect(codes.split("\n")).toEqual(["0", "0", "0"]);
    await stack.up(NODES);
  });
});
