/**
 * Runs every shell block of the documentation as printed: `npm run test:docs`. Each page gets one shell. The node has a
 * separate database and chain. Pages about databases and clouds are tested in other files.
 */
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runPrinted, shellBlocks } from "../../support/printed-shell.ts";

/** True if a block installs or starts Fencepost, which the test has already started. */
const isStart = (block: string) => /npm (install|start)|fencepost start/.test(block);
/** The first command of the guide. Its request id makes it one transaction, however often it is sent. */
const [HELLO = ""] = shellBlocks("docs/guides/start.md").filter((block) => block.startsWith("curl"));
const KEY = `0x${"5a".repeat(32)}`;
/** A contract of one byte, whose constructor takes a name and ignores it. */
const TOKEN = {
  abi: [{ type: "constructor", inputs: [{ name: "name", type: "string" }], stateMutability: "nonpayable" }],
  bytecode: "0x6001600c60003960016000f300",
};
/** The token's address in docs/cli.md, which the test replaces. */
const TOKEN_ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const TX_ID = "01890a5d-ac96-774b-bcce-b302099a8057";

let stack: Stack;
beforeAll(async () => {
  stack = await startFencepost();
  await stack.chain.rpc("hardhat_setCode", [TOKEN_ADDRESS, "0x00"]);
}, 120_000);
afterAll(() => stack?.stop());

const run = (script: string, variables: Readonly<Record<string, string>> = {}) =>
  runPrinted(script, {
    variables,
    instead: {
      "http://127.0.0.1:3000": stack.url,
      "https://relay.example": stack.url,
      "/run/secrets/payout.key": "key.hex",
    },
    files: {
      "key.hex": KEY,
      "key.txt": "s".repeat(40),
      "out/Token.sol/Token.json": JSON.stringify(TOKEN),
      "node-1.log": `{"txId":"${TX_ID}","state":"CONFIRMED"}\n{"txId":"another"}\n`,
    },
  });

const onStack = () => ({ FENCEPOST_PORT: new URL(stack.url).port });

const PAGES: readonly (readonly [page: string, said: RegExp])[] = [
  ["README.md", /"requestId":"hello-1"/],
  ["docs/cli.md", /0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266[\s\S]+CONFIRMED/],
  ["docs/feed.md", /"seq":1/],
  ["docs/logs.md", /^\{"txId":"01890a5d-ac96-774b-bcce-b302099a8057","state":"CONFIRMED"\}\n$/],
  ["docs/states.md", /"items":\[/],
  ["docs/rpc.md", /"result":"0x[0-9a-f]{64}"/],
  ["docs/operations/seeing.md", /"revision":"[0-9a-f]+"/],
  ["docs/guides/start.md", /"requestId":"hello-1"/],
  ["docs/guides/troubleshooting.md", /0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266/],
  ["docs/guides/migration.md", /0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266/],
  ["docs/signers.md", /0x[0-9a-fA-F]{40}/],
];

describe("the shell blocks of the documentation", () => {
  it.each(PAGES)("run as printed in %s", async (page, said) => {
    // The printed commands do not wait for a transaction's outcome. So create and finish a transaction beforehand,
    // which the feed's first page then shows.
    await run(HELLO, onStack());
    const [{ txId } = { txId: "" }] = (await stack.client.list({ requestId: "hello-1" })).items;
    await stack.client.waitFor(txId);
    const script = shellBlocks(page).filter((block) => !isStart(block));
    expect(script.length).toBeGreaterThan(0);
    expect(await run(script.join("\n"), onStack())).toMatch(said);
  });

  it("in docs/guides/cluster.md are a valid configuration and commands that work", async () => {
    const [node = "", ...rest] = shellBlocks("docs/guides/cluster.md");
    const settings = node.split("\n").filter((line) => line.startsWith("export "));
    const secrets = { ORDERS_SECRET: "o".repeat(32), ON_CALL_SECRET: "c".repeat(32), CLUSTER_SECRET: "s".repeat(32) };
    expect(await run([...settings, "npx fencepost config"].join("\n"), secrets)).toMatch(/peerUrlPattern/);
    const [look = "", rehearse = ""] = rest;
    expect(await run(look, onStack())).toContain("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    expect(await run(rehearse)).toMatch(/verdict +held\n/);
  }, 300_000);
});
