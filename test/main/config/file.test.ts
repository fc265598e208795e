import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../src/main/config/config.ts";
import { defineConfig } from "../../../src/main/config/define.ts";
import { loadConfig } from "../../../src/main/config/load.ts";

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "fencepost-config-"));
});
afterEach(() => rm(directory, { recursive: true }));

const write = (name: string, text: string) => writeFile(join(directory, name), text);
const load = (configPath?: string) =>
  loadConfig({ command: "config", variables: {}, workingDirectory: directory, nodeId: "n", configPath });
const mistakes = async (configPath?: string) => {
  const error = await load(configPath).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ConfigurationError);
  return (error as ConfigurationError).mistakes;
};

const TYPED = `
import { defineConfig } from "fencepost/config";
const port: number = 4321;
export default defineConfig({ port, chains: [{ id: 1, rpc: "https://one" }] });
`;

describe("the configuration file", () => {
  it("is optional", async () => {
    expect((await load()).config.port).toBe(3000);
  });

  it("may be TypeScript that imports fencepost/config, outside any project", async () => {
    await write("fencepost.config.ts", TYPED);
    const { config } = await load();
    expect(config.port).toBe(4321);
    expect(config.chains[0]?.chainId).toBe(1);
  });

  it("may be JavaScript, as module or CommonJS", async () => {
    await write("fencepost.config.js", "export default { port: 4001 };");
    expect((await load()).config.port).toBe(4001);
    await write("fencepost.config.js", "module.exports = { port: 4002 };");
    expect((await load()).config.port).toBe(4002);
  });

  it("may be JSON", async () => {
    await write("fencepost.config.json", '{ "port": 4003 }');
    expect((await load()).config.port).toBe(4003);
  });

  it("may be given by a path in another directory", async () => {
    await write("fencepost.config.json", '{ "port": 1 }');
    await write("other.json", '{ "port": 2 }');
    expect((await load("other.json")).config.port).toBe(2);
    expect((await load(join(directory, "other.json"))).config.port).toBe(2);
  });

  it("must exist if its path is given", async () => {
    expect(await mistakes("nope.ts")).toEqual(["nope.ts: there is no such file"]);
  });

  it("must be the only one in its directory", async () => {
    await write("fencepost.config.json", "{}");
    await write("fencepost.config.ts", "export default {};");
    expect(await mistakes()).toEqual([
      "fencepost.config.ts: there is fencepost.config.json beside it; keep one, or name one with --config",
    ]);
  });

  it("reports the position of a JSON error without quoting the text", async () => {
    await write("fencepost.config.json", '{\n  "privateKeys": "5ecre7"\n  "port": 1 }');
    const [line = "", ...rest] = await mistakes();
    expect(rest).toEqual([]);
    expect(line).toMatch(/^fencepost\.config\.json: cannot be read: the file is not JSON( \(line 3, column \d\))?$/);
    await write("fencepost.config.json", "");
    expect(await mistakes()).toHaveLength(1);
  });

  it.each([
    ["a syntax error", "export default {{", /^fencepost\.config\.ts: cannot be read: .+$/],
    ["an exception", 'throw new Error("first\\nsecond");', /^fencepost\.config\.ts: cannot be read: first$/],
    [
      "a missing import",
      'import "./nowhere.ts"; export default {};',
      /^fencepost\.config\.ts: cannot be read: .*nowhere.*$/,
    ],
    ["another kind of export", "export default () => ({});", /^fencepost\.config\.ts: must give an object .*$/],
    [
      "an unknown key",
      "export default { prot: 1 };",
      /^fencepost\.config\.ts: prot: is not a setting \(did you mean port\?\)$/,
    ],
  ])("is refused in one line for %s", async (_, text, expected) => {
    await write("fencepost.config.ts", text);
    const lines = await mistakes();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(expected);
  });
});

describe("defineConfig", () => {
  it("returns its argument unchanged", () => {
    const config = { leaseDuration: "10s", chains: [{ rpc: ["http://a"] }] } as const;
    expect(defineConfig(config)).toBe(config);
  });
});

describe("a configuration file that other users of the machine can read", () => {
  const OPEN = { databaseUrl: "postgres://localhost/db", rpcUrl: "http://127.0.0.1:1", auth: "none" };
  const PHRASE = "test test test test test test test test test test test junk";
  const start = (command: "start" | "config" = "start") =>
    loadConfig({ command, variables: {}, workingDirectory: directory, nodeId: "n" });
  const writeMode = async (name: string, text: string, mode: number) => {
    await write(name, text);
    await chmod(join(directory, name), mode);
  };

  it.each<[string, object]>([
    ["private keys", { ...OPEN, privateKeys: [`0x${"aB".repeat(32)}`] }],
    ["a mnemonic", { ...OPEN, mnemonic: PHRASE }],
    ["API keys", { ...OPEN, auth: "keys", privateKeyFiles: ["k"], apiKeys: [{ name: "ci", secret: "s".repeat(22) }] }],
    // protects [Signers] src/main/config/file.ts
  ])("prevents a start if the file contains %s", async (_, content) => {
    const name = "fencepost.config.json";
    for (const mode of [0o644, 0o640, 0o604]) {
      await writeMode(name, JSON.stringify(content), mode);
      const error = await start().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ConfigurationError);
      expect((error as ConfigurationError).mistakes).toEqual([
        expect.stringMatching(
          /fencepost\.config\.json: the configuration file with keys is open to other users .*chmod 600/,
        ),
      ]);
    }
    await writeMode(name, JSON.stringify(content), 0o600);
    await expect(start()).resolves.toMatchObject({ warnings: [] });
  });

  it("is accepted if the file contains no keys", async () => {
    const text = `export default { ...${JSON.stringify(OPEN)}, privateKeys: ["cd".repeat(32)] };`;
    await writeMode("fencepost.config.js", text, 0o644);
    await expect(start()).resolves.toMatchObject({ warnings: [] });
  });
});

it("a secret that cannot be masked causes a warning at start with the name of its setting", async () => {
  const variables = { FENCEPOST_DATABASE_URL: "postgres://app:fencepost@localhost/db" };
  const { warnings } = await loadConfig({ command: "dev", variables, workingDirectory: directory, nodeId: "n" });
  expect(warnings).toEqual([expect.stringMatching(/^FENCEPOST_DATABASE_URL: .*choose another$/)]);
});

describe("the place that holds the signing keys", () => {
  const KEY = "11".repeat(32);
  const START = {
    FENCEPOST_DATABASE_URL: "postgres://localhost/db",
    FENCEPOST_RPC_URL: "http://127.0.0.1:1",
    FENCEPOST_AUTH: "none",
  };
  const loaded = async (command: "start" | "dev", signing: Readonly<Record<string, string>> = {}) => {
    await writeFile(join(directory, "key"), `0x${KEY}\n`, { mode: 0o600 });
    const variables = { ...START, FENCEPOST_PRIVATE_KEY_FILES: join(directory, "key"), ...signing };
    return (await loadConfig({ command, variables, workingDirectory: directory, nodeId: "n" })).config;
  };

  it("is by default a separate process with start, and otherwise a thread", async () => {
    expect((await loaded("start")).signing).toBe("process");
    expect((await loaded("dev")).signing).toBe("thread");
    expect((await loaded("start", { FENCEPOST_SIGNING: "thread" })).signing).toBe("thread");
    expect((await loaded("dev", { FENCEPOST_SIGNING: "process" })).signing).toBe("process");
  });

  // protects [Signers] src/main/config/load.ts, src/main/node/open-signing.ts
  it("is the only place where key files are read", async () => {
    expect((await loaded("start", { FENCEPOST_SIGNING: "thread" })).secrets).toContain(KEY);
    expect((await loaded("start")).secrets).not.toContain(KEY);
  });
});
