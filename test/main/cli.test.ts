import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { main } from "../../src/main/cli.ts";
import { version } from "../../src/main/node/version.ts";
import { startFaultyRpc } from "../support/faulty-rpc.ts";

const PASSWORD = "correct-horse-battery";
const savedVariables = { ...process.env };
let directory = "";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "fencepost-main-"));
  for (const name of Object.keys(process.env)) if (name.startsWith("FENCEPOST_")) delete process.env[name];
});
afterEach(() => {
  process.env = { ...savedVariables };
  vi.restoreAllMocks();
  rmSync(directory, { recursive: true });
});

/** `main` writes to the process's own streams, so its output is captured there. */
async function run(argv: string[], variables: Record<string, string> = {}) {
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  vi.spyOn(process, "cwd").mockReturnValue(directory);
  Object.assign(process.env, variables);
  const code = await main(argv);
  vi.restoreAllMocks();
  return { code, ...written };
}

describe("the command line", () => {
  it("prints its version", async () => {
    expect(await run(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  it("prints the effective configuration of file and environment, with secrets masked", async () => {
    writeFileSync(join(directory, "fencepost.config.json"), '{ "host": "::1" }');
    const { code, stdout } = await run(["config", "--json"], {
      FENCEPOST_PORT: "4000",
      FENCEPOST_DATABASE_URL: `postgres://app:${PASSWORD}@db/app`,
    });
    expect(code).toBe(0);
    expect(stdout).not.toContain(PASSWORD);
    const rows = new Map((JSON.parse(stdout) as { key: string }[]).map((row) => [row.key, row]));
    expect(rows.get("host")).toMatchObject({ value: "::1", origin: "file" });
    expect(rows.get("port")).toMatchObject({ value: "4000", origin: "environment" });
    expect(rows.get("databaseUrl")).toMatchObject({ value: "postgres://app:***@db/app" });
  });

  // protects [Sent again, priced again, stuck] src/main/config/effective.ts
  it("prints the ceilings of the chain that the endpoint reports", async () => {
    const rpc = await startFaultyRpc(137);
    const variables = { FENCEPOST_RPC_URL: rpc.url };
    const { code, stdout } = await run(["config", "--json"], variables).finally(() => rpc.close());
    expect(code).toBe(0);
    const rows = new Map((JSON.parse(stdout) as { key: string }[]).map((row) => [row.key, row]));
    expect(rows.get("maxFeeGwei")).toMatchObject({ value: "5000 (chain 137)", origin: "default" });
    const silent = await run(["config"], variables);
    expect(silent).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("by chain id, which no endpoint reports now"),
    });
  });

  // protects [Attacks] src/main/node/load-policies.ts, src/main/cli.ts
  it("prints every mistake in the policies, as a starting node would", async () => {
    const path = join(directory, "policies.json");
    writeFileSync(path, JSON.stringify({ signers: { "*": { to: ["nobody"], maxCost: { perDay: 5 } } } }));
    const { code, stdout, stderr } = await run(["config"], { FENCEPOST_POLICY_FILE: path });
    expect([code, stdout]).toEqual([2, ""]);
    const lines = stderr.trimEnd().split("\n");
    expect(lines).toEqual([
      expect.stringContaining(`${path}: signers.*.to.0 `),
      expect.stringContaining(`${path}: signers.*.maxCost.perDay is not an amount of wei`),
    ]);
    writeFileSync(path, JSON.stringify({ signers: { "*": { maxCost: { perDay: "5" } } } }));
    expect((await run(["config"], { FENCEPOST_POLICY_FILE: path })).code).toBe(0);
  });

  it("refuses to start, with one line for each missing or invalid setting", async () => {
    const { code, stdout, stderr } = await run(["start", "--port", "x"]);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    const lines = stderr.trimEnd().split("\n");
    expect(lines).toHaveLength(5);
    for (const line of lines) expect(line).toMatch(/^fencepost: (FENCEPOST_\w+|--port): .+$/);
  });

  it("reports in one line that the database does not answer, without its password", async () => {
    const { code, stderr } = await run(["migrate"], {
      FENCEPOST_DATABASE_URL: `postgres://app:${PASSWORD}@127.0.0.1:1/app`,
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^fencepost: .*ECONNREFUSED.*\(nothing listens there.*\)\n$/);
    expect(stderr).not.toContain(PASSWORD);
  });

  it("masks secrets in a stack trace as well", async () => {
    const { code, stderr } = await run(["--verbose", "migrate"], {
      FENCEPOST_DATABASE_URL: `postgres://app:${PASSWORD}@127.0.0.1:1/app?application_name=${PASSWORD}`,
    });
    expect(code).toBe(1);
    expect(stderr).toContain("    at ");
    expect(stderr).not.toContain(PASSWORD);
  });

  it("prints with `doctor` what to correct", async () => {
    const { code, stdout, stderr } = await run(["doctor", "--json"], {
      FENCEPOST_DATABASE_URL: `postgres://app:${PASSWORD}@127.0.0.1:1/app`,
      FENCEPOST_PORT: "0",
    });
    const { findings } = JSON.parse(stdout) as { findings: { sign: string; code: string; fix: string | null }[] };
    const mistakes = findings.filter(({ sign }) => sign === "mistake");
    expect(new Set(mistakes.map((finding) => finding.code))).toEqual(
      new Set(["CONFIGURATION", "DATABASE_UNREACHABLE"]),
    );
    for (const { fix } of mistakes) expect(fix).toMatch(/./);
    expect([code, stdout.includes(PASSWORD), stderr.split("\n").length]).toEqual([1, false, 2]);
  });

  it("prints addresses with `doctor` as wallets show them", async () => {
    const key = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
    const file = join(directory, "key.hex");
    writeFileSync(file, key, { mode: 0o600 });
    const { stdout } = await run(["doctor"], { FENCEPOST_PRIVATE_KEYS: key, FENCEPOST_PRIVATE_KEY_FILES: file });
    expect(stdout).toContain("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 is given by privateKeys and privateKeyFiles");
  });

  it("writes with `init` a configuration that `config` reads", async () => {
    expect(await run(["init"])).toMatchObject({ code: 0, stdout: expect.stringContaining("fencepost.config.ts") });
    expect(await run(["config"])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^port +3000 +file$/m) });
    expect(await run(["init"])).toMatchObject({ code: 1, stderr: expect.stringContaining("is not changed") });
  });

  it("reads the file that --config names", async () => {
    writeFileSync(join(directory, "other.json"), '{ "prot": 1 }');
    expect(await run(["config", "--config", "other.json"])).toEqual({
      code: 2,
      stdout: "",
      stderr: "fencepost: other.json: prot: is not a setting (did you mean port?)\n",
    });
  });
});

describe("a command that calls a node by its URL", () => {
  /** Runs `kill` at a server that answers with this status and body; resolves with the keys that it was sent too. */
  async function killAt(status: number, body: object, variables: Record<string, string>) {
    const keys: (string | undefined)[] = [];
    const server = createServer(({ headers }, response) => {
      keys.push(headers.authorization);
      const type = status === 200 ? "application/json" : "application/problem+json";
      response.writeHead(status, { "content-type": type, connection: "close" }).end(JSON.stringify(body));
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const ended = await run(["kill", "--yes", "--reason", "theft", "--url", url], variables);
    await new Promise((closed) => server.close(closed));
    return { ...ended, keys };
  }

  it.each([
    ["fencepost.config.json", '{ "port": 30'],
    ["fencepost.config.ts", 'throw new Error("DATABASE_URL is missing")'],
    // protects [The command line] src/main/config/load.ts
  ])("kills although %s is broken, with the key of the environment", async (name, text) => {
    const secret = "k".repeat(22);
    const variables = { FENCEPOST_API_KEYS: `ops:${secret}`, FENCEPOST_RPC_URL: "nonsense", FENCEPOST_NONSENSE: "1" };
    writeFileSync(join(directory, name), text);
    const killed = { durable: true, kills: [{ signer: null, actor: "ops", reason: "theft" }], nodes: [] };
    expect(await killAt(200, killed, variables)).toMatchObject({ code: 0, stderr: "", keys: [`Bearer ${secret}`] });
  });

  it("says which mistakes it ignored if the node asks for a key", async () => {
    const problem = { type: "about:blank", title: "t", status: 401, code: "UNAUTHENTICATED", detail: "no valid key" };
    const { stderr } = await killAt(401, problem, { FENCEPOST_API_KEY: `ops:${"k".repeat(22)}` });
    expect(stderr).toMatch(/none was sent.*\nfencepost: FENCEPOST_API_KEY: .*did you mean FENCEPOST_API_KEYS/);
  });
});

describe("the set of packages loaded before a command runs", () => {
  it("has only the argument parser", () => {
    expect([...packagesBehind("src/main/cli.ts")].sort()).toEqual(["commander"]);
  });

  it("is empty for defineConfig", () => {
    expect([...packagesBehind("src/main/config/define.ts")]).toEqual([]);
  });
});

/** Follows static imports that survive compilation; `import type` and `import()` do not count. */
function packagesBehind(entry: string, seen = new Set<string>(), packages = new Set<string>()): Set<string> {
  if (seen.has(entry)) return packages;
  seen.add(entry);
  const imports = readFileSync(entry, "utf8").matchAll(/^(?:import|export)\s(?!type\s)[^;]*?from "([^"]+)";/gm);
  for (const [, target = ""] of imports) {
    if (target.startsWith(".")) packagesBehind(join(dirname(entry), target), seen, packages);
    else if (!target.startsWith("node:")) packages.add(target);
  }
  return packages;
}
