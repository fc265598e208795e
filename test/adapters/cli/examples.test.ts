/** Every command has examples in its help, and every example is a command that works. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, describe, expect, it } from "vitest";
import { examplesOf } from "../../../src/adapters/cli/examples.ts";
import { type CliActions, createProgram } from "../../../src/adapters/cli/run-cli.ts";
import type { CliIo } from "../../../src/adapters/cli/terminal.ts";
import { runCommand } from "../../support/command.ts";
import { recordedNode } from "../../support/recorded-node.ts";
import { shellWords } from "../../support/shell-words.ts";

const program = createProgram({} as CliActions, { version: "" } as CliIo);
const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
const everyPath = (command: Command): readonly string[] => [pathOf(command), ...command.commands.flatMap(everyPath)];
const paths = everyPath(program);

const files = {
  "tx.json": '{"signer":"0x","payload":{"to":"0x"}}',
  "out/Token.json": '{"abi":[],"bytecode":"0x60"}',
  "policies.json": "{}",
  "abis.json": '{"items":[]}',
  "permit.json": '{"primaryType":"Permit"}',
  "-": "secret",
};
const figures = { accepted: 1, confirmed: 1, lost: 0, duplicate: 0, gaps: 0, seconds: 1 };
const local: Partial<CliActions> = {
  dev: async () => undefined,
  start: async () => undefined,
  demo: async () => ({ ...figures, takeovers: 0, fencedWrites: 0, takeOverSeconds: null }),
  chaos: async ({ seed, output }) => ({
    ...{
      seed,
      output,
      verdict: "held",
      seconds: 1,
      faults: 1,
      byFault: { "kill -9": 1 },
      violations: [],
      stalledMs: 1,
    },
    ...{ accepted: 1, transactions: 1, confirmed: 1, sent: 1, delivered: 1, takeovers: 1, stops: 0 },
    ...{ orders: {}, refused: {} },
  }),
  bench: async () => ({
    ...{ node: "n", accepted: 1, failed: 0, seconds: 1, createsPerSecond: 1, confirmedSeconds: 1 },
    latencyMs: { p50: 1, p95: 1, p99: 1, max: 1 },
  }),
  migrate: async () => ({ applied: [] }),
  config: async () => [],
  doctor: async () => [],
  init: async () => ({ file: "f" }),
  newKey: async () => ({ address: "0x", file: "f" }),
  importKey: async () => ({ address: "0x", file: "f" }),
  listKeyFiles: async () => [],
  readProfiles: async () => ({ file: "f", current: null, profiles: { production: { url: "http://n" } } }),
  writeProfiles: async () => undefined,
};

describe("the help of the command line", () => {
  const directory = mkdtempSync(join(tmpdir(), "fencepost-examples-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.each(paths)("of %s has examples, and its text fits 80 columns", async (path) => {
    expect(examplesOf(path).length).toBeGreaterThan(0);
    const screen = { columns: 80, rows: 24, colours: false };
    const { stdout } = await runCommand([...path.split(" ").slice(1), "--help"], { screen });
    const [text = "", examples = ""] = stdout.split("\nExamples:\n");
    for (const example of examplesOf(path)) expect(examples).toContain(`  ${example}\n`);
    expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it.each(paths.flatMap((path) => examplesOf(path)))("has an example that works: %s", async (example) => {
    const { actions } = recordedNode();
    const [name, ...argv] = shellWords(example);
    expect(name).toBe("fencepost");
    const end = { looks: 1, files, directory, actions: { ...actions, ...local } };
    const { code, stderr } = await runCommand(argv, end);
    expect(stderr, example).not.toMatch(/^fencepost: /m);
    expect(code).toBe(0);
  });
});
