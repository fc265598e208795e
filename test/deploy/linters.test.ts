/** Runs the linters of the files in deploy/, if they are installed; otherwise the report names what stays unchecked. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { ROOT } from "../architecture/tree.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const DEPLOY = join(ROOT, "deploy");
const CHART = join(DEPLOY, "helm/fencepost");
const FOLDERS = [...(process.env.PATH ?? "").split(delimiter), join(process.env.HOME ?? "", "go/bin")];

const find = (tool: string) => FOLDERS.map((folder) => join(folder, tool)).find((path) => existsSync(path));
const docker = find("docker");
const compose = docker === undefined ? null : await run(docker, "compose", "version").catch(() => null);

const CHECKED_BY = {
  helm: { path: find("helm"), what: "the chart" },
  "kubectl-validate": { path: find("kubectl-validate"), what: "what the chart renders" },
  "systemd-analyze": { path: find("systemd-analyze"), what: "the unit" },
  hadolint: { path: find("hadolint"), what: "the Dockerfile" },
  "docker compose": { path: compose === null ? undefined : docker, what: "compose.yml" },
  promtool: { path: find("promtool"), what: "prometheus.yml" },
  shellcheck: { path: find("shellcheck"), what: "the style of the scripts" },
} as const;

const without = (tool: keyof typeof CHECKED_BY) =>
  `no ${tool} is installed: ${CHECKED_BY[tool].what} in deploy/ stays unchecked by it`;
for (const [tool, { path }] of Object.entries(CHECKED_BY)) {
  if (path === undefined) process.stderr.write(`${without(tool as keyof typeof CHECKED_BY)}\n`);
}

async function run(program: string | undefined, ...argv: readonly string[]): Promise<string> {
  if (program === undefined) throw new Error("not installed");
  const { stdout, stderr } = await promisify(execFile)(program, argv, { cwd: ROOT, maxBuffer: 8 * 1024 * 1024 });
  return stdout + stderr;
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { readonly template: { readonly spec: Pod } };
}

interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly { readonly env: readonly { readonly name: string; readonly value?: string }[] }[];
}

describe("helm", () => {
  const helm = CHECKED_BY.helm.path;
  const NONE = without("helm");
  // Without a cluster to query, helm assumes a Kubernetes version, and a self-built helm assumes one that is years old.
  // So name the version.
  const render = async (...argv: readonly string[]) => {
    const text = await run(helm, "template", "relay", CHART, "--kube-version", "1.31.0", ...argv);
    return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  };
  const kinds = (manifests: readonly Manifest[]) => manifests.map(({ kind }) => kind).sort();

  it("lint finds no fault in the chart", async ({ skip }) => {
    skip(helm === undefined, NONE);
    expect(await run(helm, "lint", "--strict", CHART)).toContain("0 chart(s) failed");
  });

  it("renders the chart with default values", async ({ skip }) => {
    skip(helm === undefined, NONE);
    expect(kinds(await render())).toEqual(["Deployment", "PodDisruptionBudget", "Service"]);
    const patient = await render("--set", "preStopSeconds=7,drainSeconds=30");
    const pod = patient.find(({ kind }) => kind === "Deployment")?.spec.template.spec;
    expect(pod?.terminationGracePeriodSeconds).toBe(47);
    expect(pod?.containers[0]?.env).toContainEqual({ name: "FENCEPOST_DRAIN_TIMEOUT", value: "30s" });
  });

  it("renders the chart with every option enabled", async ({ skip }) => {
    skip(helm === undefined, NONE);
    const on = ["adminPort=3100", "serviceMonitor.enabled=true", "networkPolicy.enabled=true", "configFile=x"];
    const more = ["serviceAccount.create=true", "prometheusRule.enabled=true", "prometheusRule.rules=groups: []"];
    const all = await render("--set", [...on, ...more].join(","));
    expect(kinds(all)).toEqual([
      ...["ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "PrometheusRule"],
      ...["Service", "Service", "ServiceAccount", "ServiceMonitor"],
    ]);
    const env = all.find(({ kind }) => kind === "Deployment")?.spec.template.spec.containers[0]?.env;
    expect(env).toContainEqual({ name: "FENCEPOST_ADVERTISE_URL", value: "http://$(POD_IP):3100" });
  });

  it("renders manifests that kubectl-validate accepts, with default values and with options enabled", async ({
    skip,
  }) => {
    const validate = CHECKED_BY["kubectl-validate"].path;
    skip(helm === undefined || validate === undefined, helm === undefined ? NONE : without("kubectl-validate"));
    const on = ["adminPort=3100", "networkPolicy.enabled=true", "configFile=x", "serviceAccount.create=true"];
    const other = ["preStopSeconds=0", "podDisruptionBudget.enabled=false", "service.type=LoadBalancer", "replicas=1"];
    const directory = await makeTemporaryDirectory();
    try {
      for (const [index, values] of [[], on, other].entries()) {
        const path = join(directory.path, `${index}.yaml`);
        const set = values.length === 0 ? [] : ["--set", values.join(",")];
        await writeFile(path, await run(helm, "template", "relay", CHART, "--kube-version", "1.30.0", ...set));
      }
      // Kinds of the Prometheus Operator are excluded because they are not part of Kubernetes. The version is the
      // newest whose schemas the validator contains.
      await run(validate, "--version", "1.30", directory.path);
    } finally {
      await directory.remove();
    }
  });

  it.for([
    "settings.FENCEPOST_PORT=1",
    "settings.FENCEPOST_DATABASE_URL=postgres://secret",
    "settings.lower=1",
    "replicas=0",
    "secretKeys[0]=unknown",
    "misspelt=1",
    "adminPort=3000",
    "prometheusRule.enabled=true",
  ])("refuses the chart value %s", async (value, { skip }) => {
    skip(helm === undefined, NONE);
    await expect(render("--set", value)).rejects.toThrow();
  });
});

describe("systemd-analyze", () => {
  const analyze = CHECKED_BY["systemd-analyze"].path;
  const NONE = without("systemd-analyze");

  it("accepts every line of fencepost.service, and rates its exposure below 2", async ({ skip }) => {
    skip(analyze === undefined, NONE);
    const directory = await makeTemporaryDirectory();
    const unit = join(directory.path, "fencepost.service");
    await cp(join(DEPLOY, "systemd/fencepost.service"), unit);
    try {
      // Ignore a missing /usr/bin/node: only the target machine can show whether it exists.
      const said = await run(analyze, "verify", "--man=no", unit).catch((error: { stderr: string }) => error.stderr);
      const lines = said.split("\n").filter((line) => line.includes("fencepost.service"));
      expect(lines.filter((line) => !line.includes("is not executable"))).toEqual([]);
      const judged = await run(analyze, "security", "--offline=true", "--threshold=20", unit);
      expect(judged).toMatch(/Overall exposure level.*: 1\.\d OK/);
    } finally {
      await directory.remove();
    }
  });
});

describe("linters of the deploy files", () => {
  it("hadolint finds no fault in the Dockerfile", async ({ skip }) => {
    const { path } = CHECKED_BY.hadolint;
    skip(path === undefined, without("hadolint"));
    expect(await run(path, join(DEPLOY, "Dockerfile"))).toBe("");
  });

  it("docker compose accepts compose.yml", async ({ skip }) => {
    skip(compose === null, without("docker compose"));
    // Compose checks that the secret files exist, so use a copy with dummy secrets.
    const directory = await makeTemporaryDirectory();
    try {
      await cp(DEPLOY, directory.path, { recursive: true, filter: (path) => !path.includes("/deploy/secrets") });
      await mkdir(join(directory.path, "secrets"));
      for (const name of ["rpc-url", "signer-keys"]) await writeFile(join(directory.path, "secrets", name), "x");
      await run(join(directory.path, "make-secrets.sh"));
      const file = join(directory.path, "compose.yml");
      await run(docker, "compose", "--file", file, "--profile", "dev", "config", "--quiet");
    } finally {
      await directory.remove();
    }
  });

  it("promtool accepts prometheus.yml", async ({ skip }) => {
    const { path } = CHECKED_BY.promtool;
    skip(path === undefined, without("promtool"));
    skip(
      !existsSync(join(DEPLOY, "prometheus/alerts.yml")),
      "no alerts.yml beside it yet: prometheus.yml stays unchecked",
    );
    const said = await run(path, "check", "config", "--syntax-only", join(DEPLOY, "prometheus/prometheus.yml"));
    expect(said).toContain("is valid prometheus config file syntax");
  });

  it("find no fault in the shell scripts", async ({ skip }) => {
    const scripts = ["make-secrets.sh", "drills/backup.sh", "drills/restore.sh"].map((name) => join(DEPLOY, name));
    for (const script of scripts) await run("/bin/bash", "-n", script);
    const { path } = CHECKED_BY.shellcheck;
    skip(path === undefined, without("shellcheck"));
    expect(await run(path, ...scripts)).toBe("");
  });
});
