/**
 * Every shell block of the book, run as it is printed, in one shell for each page, against a node with a database and a chain of its
 * own: `npm run test:docs`. docs/kms.md has a test of its own, as it needs clouds.
 */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { blocksOf } from "../../architecture/rules/vocabulary.ts";
import { spawnProgram } from "../../support/node-process.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const root = new URL("../../../", import.meta.url);
const blocks = (page: string) => blocksOf(readFileSync(new URL(page, root), "utf8"), "sh");
/** Starts the very thing that these tests start for it. */
const isStart = (block: string) => /npm (install|start)|fencepost start/.test(block);
/** Its request id makes the same transaction of it, however often it is sent. */
const [HELLO = ""] = blocks("docs/guides/start.md").filter((block) => block.startsWith("curl"));
const KEY = `0x${"5a".repeat(32)}`;

let stack: Stack;
beforeAll(async () => {
  stack = await startFencepost();
}, 120_000);
afterAll(() => stack?.stop());

/** Programs that come before all others. A refusal by the node is a failure of the page. */
function standIns(directory: string): string {
  const launcher = fileURLToPath(new URL("bin/fencepost.js", root));
  const programs = {
    npx: `shift\nexec "${process.execPath}" "${launcher}" "$@"`,
    curl: 'exec /usr/bin/curl --fail-with-body "$@"',
  };
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(directory, "bin", name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(directory, "bin", name), 0o755);
  }
  return `${join(directory, "bin")}:${process.env.PATH}`;
}

async function run(script: string, variables: Readonly<Record<string, string>> = {}): Promise<string> {
  const { path, remove } = await makeTemporaryDirectory();
  onTestFinished(remove);
  await mkdir(join(path, "bin"));
  writeFileSync(join(path, "key.hex"), KEY, { mode: 0o600 });
  const local = script.replaceAll("http://127.0.0.1:3000", stack.url).replaceAll("/run/secrets/payout.key", "key.hex");
  const shell = spawnProgram("bash", ["-euo", "pipefail", "-c", local], {
    directory: path,
    variables: { ...variables, PATH: standIns(path) },
  });
  const { code } = await shell.exited;
  expect({ code, said: shell.stderr() }, shell.stdout()).toMatchObject({ code: 0 });
  return shell.stdout();
}

const onStack = () => ({ FENCEPOST_PORT: new URL(stack.url).port });

const PAGES: readonly (readonly [page: string, said: RegExp])[] = [
  ["README.md", /"requestId":"order-42"/],
  ["docs/feed.md", /"seq":1/],
  ["docs/states.md", /"items":\[/],
  ["docs/rpc.md", /"result":"0x[0-9a-f]{64}"/],
  ["docs/guides/start.md", /"requestId":"hello-1"/],
  ["docs/guides/troubleshooting.md", /0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266/],
  ["docs/guides/migration.md", /0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266/],
  ["docs/signers.md", /0x[0-9a-fA-F]{40}/],
];

describe("the shell blocks", () => {
  it.each(PAGES)("of %s run as they are printed", async (page, said) => {
    // What is printed waits for an outcome nowhere, so that the first page of the feed has one.
    await run(HELLO, onStack());
    const [{ txId } = { txId: "" }] = (await stack.client.list({ requestId: "hello-1" })).items;
    await stack.client.waitFor(txId);
    const script = blocks(page).filter((block) => !isStart(block));
    expect(script.length).toBeGreaterThan(0);
    expect(await run(script.join("\n"), onStack())).toMatch(said);
  });

  it("of docs/guides/cluster.md are a configuration without a mistake, and commands that answer", async () => {
    const [node = "", ...rest] = blocks("docs/guides/cluster.md");
    const settings = node.split("\n").filter((line) => line.startsWith("export "));
    const secrets = { ORDERS_SECRET: "o".repeat(32), ON_CALL_SECRET: "c".repeat(32), CLUSTER_SECRET: "s".repeat(32) };
    expect(await run([...settings, "npx fencepost config"].join("\n"), secrets)).toMatch(/peerUrlPattern/);
    const [look = "", rehearse = ""] = rest;
    expect(await run(look, onStack())).toContain("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    expect(await run(rehearse)).toMatch(/lost +0\n +duplicate +0\n +gaps +0\n/);
  }, 300_000);
});
