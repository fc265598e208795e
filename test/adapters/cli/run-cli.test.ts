import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { referenceOf, withReference } from "../../../scripts/cli-reference.mjs";
import { CommandFailed, EXIT_CODES } from "../../../src/adapters/cli/failure.ts";
import { type CliActions, createProgram } from "../../../src/adapters/cli/run-cli.ts";
import type { CliIo } from "../../../src/adapters/cli/terminal.ts";
import { FencepostApiError, type FencepostClient } from "../../../src/client/index.ts";
import { runCommand } from "../../support/command.ts";

const node = { url: "http://127.0.0.1:3000", nodeId: "n-1" };
const devNode = { ...node, chainId: 31337, signers: ["0xAaaa", "0xBbbb"], needsKey: false, databaseUrl: null };
const run = (argv: readonly string[], actions: Partial<CliActions> = {}) => runCommand(argv, { actions });

const throwing = (error: unknown): Partial<CliActions> => ({
  migrate: async () => {
    throw error;
  },
});

describe("the CLI commands that run a node", () => {
  it("`start` prints exactly one JSON line on standard output", async () => {
    const start: CliActions["start"] = async (_, ready) => ready({ ...node, secret: "x" } as typeof node);
    for (const argv of [["start"], ["start", "--json"]]) {
      expect(await run(argv, { start })).toEqual({
        code: 0,
        stdout: '{"ready":true,"url":"http://127.0.0.1:3000","nodeId":"n-1"}\n',
        stderr: "",
      });
    }
  });

  it("`dev` prints a curl command that sends from the first account", async () => {
    const dev: CliActions["dev"] = async (_, ready) => ready(devNode);
    const { stdout } = await run(["dev"], { dev });
    const body = /^ {4}curl -s http:\/\/127\.0\.0\.1:3000\/api\/v1\/tx .*-d '(.+)'$/m.exec(stdout)?.[1] ?? "";
    expect(JSON.parse(body)).toEqual({ signer: "0xAaaa", requestId: "hello-1", payload: { to: "0xBbbb", value: "1" } });
    expect(JSON.parse((await run(["--json", "dev"], { dev })).stdout)).toEqual({ ready: true, ...node });
  });

  it("`dev` prints a curl command with a placeholder if an API key is required", async () => {
    const dev: CliActions["dev"] = async (_, ready) => ready({ ...devNode, needsKey: true });
    expect((await run(["dev"], { dev })).stdout).toContain("-H 'authorization: Bearer YOUR_API_KEY'");
  });

  it("`dev` prints the login of the database that it started, and no other", async () => {
    const databaseUrl = "postgres://fencepost:secret@127.0.0.1:5433/postgres";
    const dev: CliActions["dev"] = async (_, ready) => ready({ ...devNode, databaseUrl });
    expect((await run(["dev"], { dev })).stdout).toContain(`\n    psql ${databaseUrl}\n`);
    expect((await run(["--json", "dev"], { dev })).stdout).not.toContain("secret");
    const own: CliActions["dev"] = async (_, ready) => ready(devNode);
    expect((await run(["dev"], { dev: own })).stdout).not.toContain("psql");
  });

  it("`demo` fails if a transaction was lost", async () => {
    const report = {
      accepted: 10,
      confirmed: 10,
      lost: 0,
      duplicate: 0,
      gaps: 0,
      takeovers: 2,
      fencedWrites: 1,
      takeOverSeconds: 4.25,
      seconds: 12,
    };
    const good = await run(["demo", "--transactions", "10"], { demo: async () => report });
    expect(good.code).toBe(0);
    expect(good.stdout).toMatch(/lost\s+0\n\s+duplicate\s+0\n\s+gaps\s+0\n/);
    expect(good.stdout).toContain("4.3 s");
    const unmeasured = await run(["demo"], { demo: async () => ({ ...report, takeOverSeconds: null }) });
    expect(unmeasured.stdout).toMatch(/take over\s+-/);
    expect(JSON.parse((await run(["demo", "--json"], { demo: async () => report })).stdout)).toEqual(report);
    for (const flaw of ["lost", "duplicate", "gaps"]) {
      expect((await run(["demo"], { demo: async () => ({ ...report, [flaw]: 1 }) })).code).toBe(1);
    }
    expect((await run(["demo", "--transactions", "none"], { demo: async () => report })).code).toBe(2);
  });

  it("`start` accepts only a positive number of workers", async () => {
    let asked: number | undefined;
    const start: CliActions["start"] = async ({ workers }) => {
      asked = workers;
    };
    expect((await run(["start", "--workers", "3"], { start })).code).toBe(0);
    expect(asked).toBe(3);
    expect((await run(["start", "--workers", "0"], { start })).code).toBe(2);
  });

  it("all accept options before or after the command name", async () => {
    const seen: unknown[] = [];
    const dev: CliActions["dev"] = async (options) => void seen.push(options);
    await run(["dev"], { dev });
    await run(["--verbose", "dev", "--port", "4000", "--chain", "anvil", "--data-dir", "d", "--config", "c.ts"], {
      dev,
    });
    expect(seen).toEqual([
      { chain: "embedded", dataDir: ".fencepost" },
      { chain: "anvil", dataDir: "d", port: "4000", config: "c.ts", verbose: true },
    ]);
  });
});

describe("the output of the CLI", () => {
  it("lists the applied migrations for the command migrate", async () => {
    const applied = ["0001-schema.sql", "0002-more.sql"];
    const migrate = async () => ({ applied });
    expect((await run(["migrate"], { migrate })).stdout).toBe("applied 0001-schema.sql\napplied 0002-more.sql\n");
    expect(JSON.parse((await run(["migrate", "--json"], { migrate })).stdout)).toEqual({ applied });
    const restored = ["migrate", "--after-restore"];
    expect((await run(restored, { migrate })).stdout).toContain("every lane waits for `fencepost resume`");
    expect(JSON.parse((await run([...restored, "--json"], { migrate })).stdout)).toEqual({
      applied,
      afterRestore: true,
    });
    expect((await run(["migrate"], { migrate: async () => ({ applied: [] }) })).stdout).toBe(
      "the schema is up to date\n",
    );
  });

  it("shows the configuration in aligned columns, defaults last", async () => {
    const rows = [
      { key: "leaseDuration", variable: "FENCEPOST_LEASE_DURATION", value: "10s", origin: "default" },
      { key: "port", variable: "FENCEPOST_PORT", value: "4000", origin: "environment" },
    ];
    const config = async () => rows;
    expect((await run(["config"], { config })).stdout).toBe(
      "port           4000  FENCEPOST_PORT\nleaseDuration  10s   default\n",
    );
    expect(JSON.parse((await run(["config", "--json"], { config })).stdout)).toEqual(rows);
  });

  it("is on standard output for --version and --help", async () => {
    expect(await run(["--version"])).toEqual({ code: 0, stdout: "1.2.3\n", stderr: "" });
    const help = await run(["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    for (const command of ["dev", "start", "migrate", "config"]) expect(help.stdout).toContain(`  ${command} `);
    expect((await run(["start", "--help"])).stdout).toContain("--verbose");
  });
});

describe("a wrong call of the CLI", () => {
  it.each([
    [["stat"], "fencepost: unknown command 'stat' (Did you mean start?); see fencepost --help\n"],
    [
      ["start", "--prot", "1"],
      "fencepost: unknown option '--prot' (Did you mean --port?); see fencepost start --help\n",
    ],
    [
      ["--url", "http://n:1", "leases"],
      "fencepost: unknown option '--url': options of a command come after its name; see fencepost --help\n",
    ],
    [["start", "--port"], "fencepost: option '--port <number>' argument missing; see fencepost start --help\n"],
    [["migrate", "now"], /^fencepost: too many arguments.*; see fencepost migrate --help\n$/],
    [
      ["dev", "--chain", "geth"],
      /^fencepost: option '--chain <kind>' argument 'geth' is invalid.*; see fencepost dev --help\n$/,
    ],
    [["keys", "api", "mint"], /^fencepost: unknown command 'mint'.*; see fencepost keys api --help\n$/],
    [
      ["tx", "019a4b…6b7c8d"],
      /^fencepost: 019a4b…6b7c8d is shortened: list it with --wide.*; see fencepost tx --help\n$/,
    ],
    [["list", "--signer", "0xf39F…2266"], /^fencepost: 0xf39F…2266 is shortened.*; see fencepost list --help\n$/],
    [["keys", "api", "new"], /^fencepost: missing required argument 'name'; see fencepost keys api new --help\n$/],
  ])("%j is refused in one line, with exit code 2", async (argv, line) => {
    const { code, stdout, stderr } = await run(argv);
    expect(code).toBe(EXIT_CODES.misused);
    expect(stdout).toBe("");
    expect(stderr).toMatch(line);
    expect(stderr.match(/\n/g)).toHaveLength(1);
  });

  it("prints the help if no command is given", async () => {
    const { code, stderr } = await run([]);
    expect(code).toBe(EXIT_CODES.misused);
    expect(stderr).toContain("Usage: fencepost");
  });
});

describe("failures of a CLI command", () => {
  it("are printed in one line with exit code 1, whatever value is thrown", async () => {
    const thrown = [
      new Error("first\nsecond\u001b[2J"),
      "text",
      null,
      undefined,
      7,
      {},
      new Error(""),
      new AggregateError([]),
    ];
    for (const error of thrown) {
      const { code, stdout, stderr } = await run(["migrate"], throwing(error));
      expect(code).toBe(EXIT_CODES.failed);
      expect(stdout).toBe("");
      expect(stderr).toMatch(/^fencepost: \P{Cc}+\n$/u);
      expect(stderr).not.toContain("    at ");
    }
  });

  it("include advice if the error is known", async () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" });
    expect((await run(["migrate"], throwing(refused))).stderr).toBe(
      "fencepost: connect ECONNREFUSED 127.0.0.1:5432 (nothing listens there: is it running, and is the URL right?)\n",
    );
    const taken = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE" });
    expect((await run(["migrate"], throwing(taken))).stderr).toContain("--port");
    const password = Object.assign(new Error("password authentication failed"), { code: "28P01" });
    expect((await run(["migrate"], throwing(password))).stderr).toContain("FENCEPOST_DATABASE_URL");
    const none = new Error("SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string");
    expect((await run(["migrate"], throwing(none))).stderr).toBe(
      "fencepost: the database asks for a password, and FENCEPOST_DATABASE_URL has none\n",
    );
  });

  it("show the first cause of an AggregateError", async () => {
    const one = Object.assign(new Error("connect ECONNREFUSED ::1:5432"), { code: "ECONNREFUSED" });
    const { stderr } = await run(["migrate"], throwing(new AggregateError([one, new Error("other")])));
    expect(stderr).toContain("connect ECONNREFUSED ::1:5432 (nothing listens there");
  });

  it("show the stack and the causes only with --verbose", async () => {
    const error = new Error("outer", { cause: new Error("inner") });
    const quiet = await run(["migrate"], throwing(error));
    expect(quiet.stderr).toBe("fencepost: outer\n");
    const verbose = await run(["migrate", "--verbose"], throwing(error));
    expect(verbose.stderr).toMatch(/outer[\s\S]+ {4}at [\s\S]+inner/);
  });

  it("are printed in full if the error is a CommandFailed", async () => {
    const error = new CommandFailed(["A: wrong", "B: wrong"], EXIT_CODES.misused, { cause: new Error("inner") });
    expect(await run(["migrate"], throwing(error))).toEqual({
      code: 2,
      stdout: "",
      stderr: "fencepost: A: wrong\nfencepost: B: wrong\n",
    });
    expect((await run(["--verbose", "migrate"], throwing(error))).stderr).toContain("    at ");
    expect((await run(["migrate"], throwing(new CommandFailed(["x"])))).code).toBe(EXIT_CODES.failed);
  });
});

describe("a CLI command that calls a running node", () => {
  const lease = {
    chainId: 1,
    signer: "0xAaaa" as const,
    nodeId: "n-1",
    instanceId: "i-1",
    fencingToken: 12,
    acquiredAt: "2026-01-01T00:00:00.000Z",
    expiresAt: "2026-01-01T00:00:10.000Z",
  };
  const member = {
    nodeId: "n-1",
    instanceId: "i-1",
    url: "http://10.0.0.1:3000",
    version: "1.2.3",
    mode: "worker-queue" as const,
    startedAt: "2026-01-01T00:00:00.000Z",
    heartbeatAt: "2026-01-01T00:00:05.000Z",
    lanes: 2,
  };
  const answering = (client: Partial<FencepostClient>): Partial<CliActions> => ({
    connect: async () => client as FencepostClient,
  });

  it("lists nodes and leases as readable tables", async () => {
    const nodes = async () => [member, { ...member, nodeId: "inside-another", url: "", lanes: 0 }];
    expect((await run(["nodes"], answering({ nodes }))).stdout.split("\n")).toEqual([
      "node            url                   version  mode          lanes  started                   last heartbeat",
      "n-1             http://10.0.0.1:3000  1.2.3    worker-queue  2      2026-01-01T00:00:00.000Z  2026-01-01T00:00:05.000Z",
      "inside-another  (embedded)            1.2.3    worker-queue  0      2026-01-01T00:00:00.000Z  2026-01-01T00:00:05.000Z",
      "",
    ]);
    expect((await run(["leases"], answering({ leases: async () => [lease] }))).stdout).toBe(
      "chain  signer  node  token  acquired                  expires\n" +
        "1      0xAaaa  n-1   12     2026-01-01T00:00:00.000Z  2026-01-01T00:00:10.000Z\n",
    );
  });

  it("stops one signer or all signers", async () => {
    const requests: unknown[] = [];
    const state = {
      durable: false,
      kills: [{ killId: "k", signer: null, actor: "operator:ops", reason: "stolen" }],
      nodes: [{ nodeId: "n-2", url: "http://10.0.0.2:3000", told: false }],
    };
    const kill = async (request?: object) => {
      requests.push(request);
      return state;
    };
    expect((await run(["kill", "--reason", "stolen"], answering({ kill }))).stdout.split("\n")).toEqual([
      "stopped     by            reason",
      "everything  operator:ops  stolen",
      "not stored in the database yet: the nodes that know of it keep trying",
      "the node that was asked has stopped; the others:",
      "node  url                   stopped",
      "n-2   http://10.0.0.2:3000  not yet",
      "",
    ]);
    await run(["kill", "0xAaaa"], answering({ kill }));
    expect(requests).toEqual([{ reason: "stolen" }, { signer: "0xAaaa" }]);
    const endKill = async () => ({ durable: true, kills: [], nodes: [] });
    expect((await run(["unkill"], answering({ endKill }))).stdout).toMatch(
      /^nothing is stopped, and the alert KILLED is resolved: each node sends what waits, in nonce order/,
    );
    const rest = { ...state, durable: true, nodes: [] };
    expect((await run(["unkill", "0xAaaa"], answering({ endKill: async () => rest }))).stdout).toMatch(
      /^this kill has ended, but others are in force.*\nstopped .*\neverything +operator:ops +stolen\n$/,
    );
  });

  it("creates API keys with a rate limit and a queue share", async () => {
    const asked: unknown[] = [];
    const quotas = { createsPerSecond: 20, readsPerSecond: 200, queueShare: 0.1 };
    const terms = { name: "airdrop", scopes: ["submit" as const], signers: null, chains: null };
    const addKey: FencepostClient["addKey"] = async (request) => {
      asked.push(request);
      return { ...terms, ...quotas, secret: "its-secret", secretId: "5f1d7a84" };
    };
    const argv = ["keys", "api", "new", "airdrop", "--rate", "20", "--read-rate", "200", "--queue-share", "0.1"];
    argv.push("--scopes", "submit");
    expect((await run(argv, answering({ addKey }))).stdout).toContain("its-secret");
    expect(asked).toEqual([{ name: "airdrop", scopes: ["submit"], ...quotas }]);
    for (const wrong of ["--rate", "--read-rate", "--queue-share"]) {
      expect((await run(["keys", "api", "new", "a", wrong, "none"], answering({ addKey }))).code).toBe(2);
    }
    const at = "2026-01-01T00:00:00.000Z";
    const keys = async () => [
      { ...terms, ...quotas, createdAt: at, secrets: [] },
      {
        ...terms,
        name: "usual",
        createsPerSecond: null,
        readsPerSecond: null,
        queueShare: null,
        createdAt: at,
        secrets: [],
      },
    ];
    expect((await run(["keys", "api", "list"], answering({ keys }))).stdout.split("\n").slice(1, 3)).toEqual([
      expect.stringMatching(/^airdrop +submit +all +all +20 +200 +0\.1 /),
      expect.stringMatching(/^usual +submit +all +all +default +default +default /),
    ]);
  });

  it("prints the API's response with --json", async () => {
    const both = answering({ nodes: async () => [member], leases: async () => [] });
    expect(JSON.parse((await run(["nodes", "--json"], both)).stdout)).toEqual({ items: [member] });
    expect(JSON.parse((await run(["--json", "leases"], both)).stdout)).toEqual({ items: [] });
    expect((await run(["leases"], both)).stdout).toBe("no lane is owned\n");
  });

  it.each([
    ["UNAVAILABLE", 1, "UNAVAILABLE: http://x does not answer"],
    ["QUEUE_FULL", 3, "QUEUE_FULL: http://x does not answer"],
  ] as const)("prints one line with advice for %s, exit code %i", async (code, exitCode, line) => {
    const nodes = async () =>
      Promise.reject(new FencepostApiError({ code, status: 0, detail: "http://x does not answer" }));
    expect(await run(["nodes"], answering({ nodes }))).toEqual({
      code: exitCode,
      stdout: "",
      stderr: `fencepost: ${line}\n`,
    });
  });

  it("calls the node that --url names", async () => {
    const asked: unknown[] = [];
    const connect: CliActions["connect"] = async (options) => {
      asked.push(options.url);
      return { nodes: async () => [] } as Partial<FencepostClient> as FencepostClient;
    };
    await run(["nodes", "--url", "http://10.0.0.2:3000"], { connect });
    expect(asked).toEqual(["http://10.0.0.2:3000"]);
  });
});

describe("docs/cli.md", () => {
  const text = readFileSync("docs/cli.md", "utf8");

  it("has every command and option as the help has them; if not, run npm run docs:cli", () => {
    const program = createProgram({} as CliActions, { version: "" } as CliIo);
    const reference = referenceOf(program);
    expect(reference.match(/^\| `fencepost /gm)?.length).toBeGreaterThan(50);
    expect(text === withReference(text, reference)).toBe(true);
  });

  it("lists every exit code, and no other", () => {
    const actual = Object.values(EXIT_CODES).map(String).sort();
    const codes = [...text.matchAll(/^\| (\d+) \|/gm)].map((match) => match[1] ?? "");
    expect(codes.sort()).toEqual(actual);
  });
});

describe("fencepost keys", () => {
  const row = { address: "0xAbc", file: "keys/UTC--1--abc" };

  it("prints the address and the file of a new or imported key", async () => {
    const newKey = async () => row;
    expect((await run(["keys", "new"], { newKey })).stdout).toBe("0xAbc is in keys/UTC--1--abc\n");
    const asked: unknown[] = [];
    const importKey: CliActions["importKey"] = async ({ from }) => {
      asked.push(from);
      return row;
    };
    await run(["keys", "import"], { importKey });
    await run(["keys", "import", "--from", "key.hex"], { importKey });
    expect(asked).toEqual(["-", "key.hex"]);
    const listKeyFiles = async () => [row, { address: null, file: "b.json" }];
    const { stdout } = await run(["keys", "list"], { listKeyFiles });
    expect(stdout).toBe("0xAbc                    keys/UTC--1--abc\n(the file does not say)  b.json\n");
    expect((await run(["keys", "list"], { listKeyFiles: async () => [] })).stdout).toBe("there is no key\n");
    expect(JSON.parse((await run(["keys", "list", "--json"], { listKeyFiles })).stdout)).toHaveLength(2);
  });
});
