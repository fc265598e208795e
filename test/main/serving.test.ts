import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { main } from "../../src/main/cli.ts";
import type { DevReady, DevRequest } from "../../src/main/dev/dev.ts";

const { dev, start } = vi.hoisted(() => ({ dev: vi.fn(), start: vi.fn() }));
vi.mock("../../src/main/dev/dev.ts", () => ({ dev }));
vi.mock("../../src/main/start.ts", () => ({ start }));

const node = { url: "http://127.0.0.1:4000", nodeId: "n" };
const savedVariables = { ...process.env };
const START = {
  FENCEPOST_DATABASE_URL: "postgres://app:hunter2hunter2@db/app",
  FENCEPOST_RPC_URL: "http://localhost:8545",
  FENCEPOST_MNEMONIC: "test test test test test test test test test test test junk",
  FENCEPOST_AUTH: "none",
  FENCEPOST_LOG_LEVEL: "silent",
};
let written = { stdout: "", stderr: "" };

beforeEach(() => {
  written = { stdout: "", stderr: "" };
  for (const name of Object.keys(process.env)) if (name.startsWith("FENCEPOST_")) delete process.env[name];
  for (const name of ["stdout", "stderr"] as const) {
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
});
afterEach(() => {
  process.env = { ...savedVariables };
  vi.restoreAllMocks();
  dev.mockReset();
  start.mockReset();
});

describe("the command fencepost dev", () => {
  const ready = { ...node, chainId: 31337, signers: ["0xA", "0xB"], databaseUrl: null };

  it("writes its progress to standard error", async () => {
    dev.mockImplementation(async (request: DevRequest, done: (one: DevReady) => void) => {
      request.say("PostgreSQL is coming up");
      done(ready);
    });
    expect(await main(["dev", "--port", "0", "--chain", "anvil", "--data-dir", "/data"])).toBe(0);
    const [request] = dev.mock.calls[0] as [DevRequest];
    expect(request).toMatchObject({
      chain: "anvil",
      directory: "/data",
      config: { port: 0, databaseUrl: null, chains: [] },
    });
    expect(request.config.chainDefaults.confirmations).toBe(2);
    expect(written.stderr).toBe("PostgreSQL is coming up\n");
    expect(written.stdout).toContain("curl -s http://127.0.0.1:4000/api/v1/tx");
    expect(written.stdout).not.toContain("Bearer");
  });

  it("adds the API key to the printed curl command if one is set", async () => {
    process.env.FENCEPOST_API_KEYS = "me:a-secret-of-mine-and-nobody-else";
    dev.mockImplementation(async (_: DevRequest, done: (one: DevReady) => void) => done(ready));
    expect(await main(["dev"])).toBe(0);
    expect(written.stdout).toContain("Bearer YOUR_API_KEY");
    expect(written.stdout).not.toContain("a-secret-of-mine");
  });
});

describe("the command fencepost start", () => {
  it("prints only the ready line to standard output", async () => {
    Object.assign(process.env, START);
    start.mockImplementation(async (_: unknown, done: (one: typeof node) => void) => done(node));
    expect(await main(["start"])).toBe(0);
    const [{ config, sharesPort }] = start.mock.calls[0] ?? [];
    expect(sharesPort).toBe(false);
    expect(config).toMatchObject({
      databaseUrl: START.FENCEPOST_DATABASE_URL,
      apiKeys: "none",
      chains: [{ chainId: null }],
    });
    expect(config.nodeId).toMatch(new RegExp(`^[\\w.-]+-${process.pid}-[0-9a-f]{6}$`));
    expect(JSON.parse(written.stdout)).toEqual({ ready: true, ...node });
  });

  it("uses a different node id for each process", async () => {
    Object.assign(process.env, START);
    await main(["start"]);
    await main(["start"]);
    const [first, second] = start.mock.calls.map(([{ config }]) => config.nodeId);
    expect(first).not.toBe(second);
  });

  it("reports a failure in one line with exit code 1", async () => {
    Object.assign(process.env, START);
    start.mockRejectedValue(new Error("cannot connect to postgres://app:hunter2hunter2@db/app"));
    expect(await main(["start"])).toBe(1);
    expect(written).toEqual({
      stdout: "",
      stderr: "fencepost: cannot connect to postgres://app:***@db/app\n",
    });
  });
});
