/**
 * Compares variables, paths, ports, commands and times in deploy/ with the code: a file that no test runs becomes
 * outdated unnoticed.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { posix } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { SETTING_KEYS, SETTINGS } from "../../src/main/config/schema.ts";
import { version } from "../../src/main/node/version.ts";
import { listFiles, ROOT, readText } from "../architecture/tree.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const files = listFiles("deploy").filter((path) => !path.startsWith("deploy/secrets/"));
const variables = new Set<string>(SETTING_KEYS.map((key) => SETTINGS[key].variable));
const commands = new Set(
  listFiles("src/adapters/cli").flatMap((path) => matches(readText(path), /\.command\("([a-z]+)/g)),
);

const DOCKERFILE = readText("deploy/Dockerfile");
const UNIT = readText("deploy/systemd/fencepost.service");
const CONFIG = readText("deploy/fencepost.config.js");
const CHART = "deploy/helm/fencepost";
const DEPLOYMENT = readText(`${CHART}/templates/deployment.yaml`);
const compose = readYaml<Compose>("deploy/compose.yml");
const schema = JSON.parse(readText(`${CHART}/values.schema.json`)) as Schema;

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

interface Service {
  readonly image: string;
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly stop_grace_period?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
}

interface Schema {
  readonly properties: Readonly<Record<string, unknown>> & {
    readonly secretKeys: { readonly items: { readonly enum: readonly string[] } };
    readonly settings: { readonly propertyNames: { readonly not: { readonly enum: readonly string[] } } };
  };
}

function readYaml<T>(path: string): T {
  return parse(readText(path), { merge: true }) as T;
}

/** Returns the first capture group of every match of the pattern. */
function matches(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].flatMap(([, found]) => found ?? []);
}

const nodes = Object.entries(compose.services).filter(([name]) => name.startsWith("node-"));
/** Names of the credential files that the configuration reads. */
const credentials = new Set(matches(CONFIG, /(?:secret|present)\("([a-z-]+)"\)/g));
const port = String(SETTINGS.port.fallback);

describe("every file in deploy/", () => {
  it.each(files)("%s names only settings that exist", (path) => {
    const named = readText(path).match(/FENCEPOST_[A-Z0-9_]+/g) ?? [];
    expect(named.filter((name) => !variables.has(name))).toEqual([]);
  });

  it("names only Fencepost commands that exist", () => {
    const said = files.flatMap((path) =>
      matches(
        readText(path).replace(/^\s*#.*$/gm, ""),
        /(?:fencepost\.js|`fencepost|"\$\{fencepost\[@\]\}")[", ]+([a-z]{3,})/g,
      ),
    );
    expect(said).toEqual(expect.arrayContaining(["start", "health", "ready", "migrate"]));
    expect(said.filter((command) => !commands.has(command))).toEqual([]);
  });

  it("can be parsed if it is YAML or JSON", () => {
    const yaml = files.filter((path) => /\.ya?ml$/.test(path) && !path.includes("/templates/"));
    expect(yaml.length).toBeGreaterThan(5);
    for (const path of yaml) expect(readYaml(path), path).toBeTypeOf("object");
    for (const path of files.filter((name) => name.endsWith(".json"))) JSON.parse(readText(path));
  });

  it("refers only to documents and scripts that exist", () => {
    const named = files.flatMap(
      (path) => readText(path).match(/\b(?:docs|deploy)\/[\w./-]+\.(?:md|sh|yml|js)\b/g) ?? [],
    );
    expect(named.length).toBeGreaterThan(5);
    const missing = named.filter((path) => !existsSync(posix.join(ROOT, path)));
    expect(missing).toEqual([]);
  });
});

describe("the container image", () => {
  const copied = matches(DOCKERFILE, /^COPY (?!--from)(.+) \S+$/gm).flatMap((words) => words.split(" "));

  it("copies only paths that exist", () => {
    expect(copied.filter((path) => !existsSync(posix.join(ROOT, path)))).toEqual([]);
    const admitted = matches(readText("deploy/Dockerfile.dockerignore"), /^!(.+)$/gm);
    expect([...admitted].sort()).toEqual([...new Set(copied)].sort());
    expect(readText("deploy/Dockerfile.dockerignore")).toMatch(/^\*$/m);
  });

  it("runs Node directly as an unprivileged user, with the launcher's flags and the default port", () => {
    const flags = /exec node (--max\S+ --no\S+) "/.exec(readText("bin/fencepost.js"))?.[1]?.split(" ") ?? [];
    expect(flags).toHaveLength(2);
    const entry = JSON.parse(/^ENTRYPOINT (.+)$/m.exec(DOCKERFILE)?.[1] ?? "[]") as string[];
    expect(entry).toEqual(["/nodejs/bin/node", ...flags, "/app/bin/fencepost.js"]);
    expect(UNIT).toContain(`/usr/bin/node ${flags.join(" ")} /opt/fencepost/bin/fencepost.js start`);
    expect(DOCKERFILE).toMatch(/^USER 65532:65532$/m);
    expect(DOCKERFILE).toMatch(new RegExp(`^EXPOSE ${port}$`, "m"));
    expect(DOCKERFILE).toContain(`FENCEPOST_PORT=${port}`);
  });

  it("contains jiti, the one runtime package that the bundle leaves out", () => {
    const left = /LEFT_OUT = \[(.+)\]/.exec(readText("scripts/bundle.mjs"))?.[1] ?? "";
    // Some packages are not in the bundle. Ignore those that only `fencepost dev` uses (nomicfoundation) and pg's
    // optional accelerator (pg-native).
    expect(left.split(", ").filter((name) => !/nomicfoundation|pg-native/.test(name))).toEqual(['"jiti"']);
    expect(DOCKERFILE).toContain("/node_modules/jiti /app/node_modules/jiti");
  });

  it("uses a Node version that CI tests", () => {
    const major = /^ARG NODE_MAJOR=(\d+)$/m.exec(DOCKERFILE)?.[1];
    const tried = /node: \[(.+)\]/.exec(readText(".github/workflows/ci.yml"))?.[1]?.split(", ");
    expect(tried).toContain(major);
  });
});

describe("deploy/fencepost.config.js", () => {
  it("sets only settings that exist", () => {
    const keys = matches(CONFIG, /^ {2}(\w+): /gm);
    expect(keys.length).toBeGreaterThan(6);
    expect(keys.filter((key) => !(key in SETTINGS))).toEqual([]);
  });

  it("reads every secret file that compose.yml, the chart and the systemd unit provide", () => {
    for (const [name, { secrets = [] }] of nodes) {
      expect(
        secrets.filter((secret) => !credentials.has(secret)),
        name,
      ).toEqual([]);
    }
    expect(new Set(schema.properties.secretKeys.items.enum)).toEqual(credentials);
    const loaded = matches(UNIT, /^#?LoadCredential=([a-z-]+):/gm);
    expect(loaded.length).toBeGreaterThan(3);
    expect(loaded.filter((name) => !credentials.has(name))).toEqual([]);
  });

  it("reads secret files without their line break", async () => {
    const directory = await makeTemporaryDirectory();
    for (const name of ["database-url", "api-keys", "signer-keys"]) {
      await writeFile(posix.join(directory.path, name), `${name} as it is\n`);
    }
    const script = "console.log(JSON.stringify((await import(process.argv[1])).default))";
    const argv = ["--input-type=module", "--eval", script, posix.join(ROOT, "deploy/fencepost.config.js")];
    const env = { CREDENTIALS_DIRECTORY: directory.path };
    const { stdout } = await promisify(execFile)(process.execPath, argv, { env });
    await directory.remove();
    expect(JSON.parse(stdout)).toEqual({
      databaseUrl: "database-url as it is",
      apiKeys: "api-keys as it is",
      privateKeyFiles: posix.join(directory.path, "signer-keys"),
    });
  });

  it("fails with the path of a secret file that is not readable", async () => {
    const directory = await makeTemporaryDirectory();
    const closed = posix.join(directory.path, "closed");
    await mkdir(closed);
    await writeFile(posix.join(closed, "database-url"), "as it is\n");
    await chmod(closed, 0o000);
    // Root may read every file, so the script switches to another account before it reads the configuration. The text
    // of the configuration module is read beforehand and passed as an argument.
    const root = process.getuid?.() === 0;
    const script = `${root ? "process.setuid(65534);" : ""}await import("data:text/javascript," + encodeURIComponent(process.argv[1]))`;
    const argv = ["--input-type=module", "--eval", script, CONFIG];
    const env = { CREDENTIALS_DIRECTORY: closed };
    const reading = promisify(execFile)(process.execPath, argv, { env });
    await expect(reading).rejects.toMatchObject({
      stderr: expect.stringMatching(/EACCES: permission denied.*closed\/database-url/),
    });
    await chmod(closed, 0o700);
    await directory.remove();
  });

  it("is the only source of secrets, because the chart refuses secrets among its values", () => {
    const refused = new Set(schema.properties.settings.propertyNames.not.enum);
    const secret = SETTING_KEYS.filter((key) => key in { databaseUrl: 1, apiKeys: 1, clusterSecret: 1, mnemonic: 1 });
    expect(secret.map((key) => SETTINGS[key].variable).filter((name) => !refused.has(name))).toEqual([]);
    const own = matches(DEPLOYMENT, /- name: (FENCEPOST_[A-Z_]+)/g);
    expect(own.length).toBeGreaterThan(4);
    expect(
      own.filter((name) => !refused.has(name)),
      "what the chart sets cannot be set twice",
    ).toEqual([]);
  });
});

describe("compose.yml", () => {
  it("has three nodes that Prometheus scrapes", () => {
    expect(nodes.map(([name]) => name)).toEqual(["node-1", "node-2", "node-3"]);
    for (const [name, { environment = {}, ports = [] }] of nodes) {
      expect(environment).toMatchObject({ FENCEPOST_NODE_ID: name, FENCEPOST_ADVERTISE_URL: `http://${name}:${port}` });
      expect(ports.every((mapping) => mapping.startsWith("127.0.0.1:") && mapping.endsWith(`:${port}`))).toBe(true);
    }
    const { scrape_configs } = readYaml<{ scrape_configs: { static_configs: { targets: string[] }[] }[] }>(
      "deploy/prometheus/prometheus.yml",
    );
    const targets = scrape_configs.flatMap((job) => job.static_configs.flatMap((group) => group.targets));
    expect(targets).toEqual(nodes.map(([name]) => `${name}:${port}`));
  });

  it("uses the Prometheus job name that the alerts use, and so does the chart", () => {
    const { scrape_configs } = readYaml<{ scrape_configs: { job_name: string }[] }>("deploy/prometheus/prometheus.yml");
    expect(scrape_configs.map(({ job_name }) => job_name)).toEqual(["fencepost"]);
    expect(readText(`${CHART}/templates/monitoring.yaml`)).toContain("jobLabel: app.kubernetes.io/name\n");
    expect(readText(`${CHART}/templates/_names.tpl`)).toContain("app.kubernetes.io/name: fencepost\n");
  });

  it("mounts only files that exist", () => {
    const mounted = Object.values(compose.services).flatMap(({ volumes = [] }) =>
      volumes.filter((volume) => volume.startsWith("./")).map((volume) => volume.split(":")[0] ?? ""),
    );
    expect(mounted.length).toBeGreaterThan(2);
    expect(mounted.filter((path) => !existsSync(posix.join(ROOT, "deploy", path)))).toEqual([]);
    const made = new Set(matches(readText("deploy/make-secrets.sh"), /^\s*keep ([a-z-]+) /gm));
    expect(new Set(Object.keys(compose.secrets))).toEqual(made);
    const used = new Set(Object.values(compose.services).flatMap(({ secrets = [] }) => secrets));
    expect([...used].filter((name) => !(name in compose.secrets))).toEqual([]);
  });

  it("pins the version of every image that it does not build", () => {
    const images = Object.values(compose.services).map(({ image }) => image);
    expect(images.filter((image) => !/:[\w${}:.-]*\d[\w.-]*$|IMAGE_TAG/.test(image))).toEqual([]);
  });
});

describe("stopping a node under compose, Kubernetes and systemd", () => {
  const drainSeconds = SETTINGS.drainTimeout.fallback / 1_000;
  // Seconds in which a node must stop; test/integration/shutdown.test.ts checks this with hanging dependencies.
  const least = drainSeconds + 5;

  it("allows the node more time than the drain takes", () => {
    for (const [name, { stop_grace_period }] of nodes) {
      expect(Number.parseInt(stop_grace_period ?? "0", 10), name).toBeGreaterThan(least);
    }
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(UNIT)?.[1])).toBeGreaterThan(least);
    expect(DEPLOYMENT).toContain(
      "terminationGracePeriodSeconds: {{ add .Values.preStopSeconds .Values.drainSeconds 10 }}",
    );
    const { drainSeconds: said } = readYaml<{ drainSeconds: number }>(`${CHART}/values.yaml`);
    expect(said).toBe(drainSeconds);
  });

  it("signals only the Node process, not the child processes", () => {
    expect(UNIT).toMatch(/^KillMode=mixed$/m);
    expect(UNIT).toMatch(/^NoNewPrivileges=yes$/m);
    expect(UNIT).toMatch(/^ProtectSystem=strict$/m);
  });
});

describe("the Helm chart", () => {
  it("has the version of the package", () => {
    expect(readYaml(`${CHART}/Chart.yaml`)).toMatchObject({ version, appVersion: version });
  });

  it("uses the health routes of a node as probes, and has no autoscaler", () => {
    const routes = listFiles("src/adapters/http").map(readText).join("\n");
    const asked = matches(DEPLOYMENT, /path: (\/\w+)$/gm);
    expect(new Set(asked)).toEqual(new Set(["/healthz", "/readyz"]));
    for (const path of [...asked, "/metrics"]) expect(routes).toContain(`"${path}"`);
    expect(files.map((path) => readText(path)).filter((text) => /kind: HorizontalPodAutoscaler/.test(text))).toEqual(
      [],
    );
  });

  it("lists every value in its schema", () => {
    const values = Object.keys(readYaml<object>(`${CHART}/values.yaml`));
    expect(values.filter((key) => !(key in schema.properties))).toEqual([]);
  });
});
