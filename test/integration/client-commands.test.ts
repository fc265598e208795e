/**
 * Commands that call a node, tested against a real node: in this process if possible, otherwise as the shipped program.
 */
import { describe, expect } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { type CommandWorld, runCommand } from "../support/command.ts";
import { it as base, RECIPIENT, SIGNER } from "../support/integration.ts";
import { spawnFencepost } from "../support/node-process.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Fixtures {
  readonly node: { readonly url: string };
  /** Runs a command in this process against the fixture's node, on the real clock. */
  readonly fencepost: (argv: readonly string[], world?: CommandWorld) => ReturnType<typeof runCommand>;
  /** An empty directory. */
  readonly home: string;
}

const it = base.extend<Fixtures>({
  node: async ({ nodes, edr }, use) => {
    await use(await nodes.start(edr.url));
  },
  fencepost: async ({ node }, use) => {
    const actions = { connect: async () => createClient({ url: node.url }) };
    await use((argv, world) => runCommand(argv, { actions, real: true, ...world }));
  },
  home: async ({ task: _ }, use) => {
    const directory = await makeTemporaryDirectory();
    await use(directory.path);
    await directory.remove();
  },
});

const from = ["--signer", SIGNER] as const;
const json = async (running: ReturnType<typeof runCommand>) => {
  const { stdout, stderr, code } = await running;
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
};

/** Init code of a contract that reverts on every call. */
const REVERTING = "0x6005600c60003960056000f360006000fd";

describe("the client commands of the command line", () => {
  it("report the outcome of a transaction by exit code", async ({ fencepost }) => {
    const sent = await json(
      fencepost([
        "send",
        ...from,
        "--to",
        RECIPIENT,
        "--value",
        "0.5ether",
        "--request-id",
        "order-1",
        "--wait",
        "--json",
      ]),
    );
    expect(sent).toMatchObject({ state: "CONFIRMED", payload: { value: "500000000000000000" } });
    const again = await json(
      fencepost(["send", ...from, "--to", RECIPIENT, "--value", "0.5ether", "--request-id", "order-1", "--json"]),
    );
    expect(again.txId, "a repeat is the same transaction").toBe(sent.txId);
    const deployed = await json(fencepost(["send", ...from, "--bytecode", REVERTING, "--wait", "--json"]));
    const contract = deployed.receipt.contractAddress as string;
    const call = ["send", ...from, "--to", contract, "set(uint256[],bool)", "[1,2]", "true"];
    expect(await fencepost(call), "the node simulates it").toMatchObject({
      code: 3,
      stderr: expect.stringContaining("revert"),
    });
    for (const named of [[sent.txHash], ["--request-id", "order-1", ...from]]) {
      expect((await json(fencepost(["tx", ...named, "--history", "--json"]))).history).toContainEqual(
        expect.objectContaining({ event: "confirm" }),
      );
    }
    expect((await fencepost(["explain", sent.txId])).stdout).toMatch(
      /^Nonce 0: mined in block \d+ and final\. CONFIRMED\n/,
    );
    expect((await json(fencepost(["list", "--state", "CONFIRMED", "--all", "--json"]))).items).toHaveLength(2);
  });

  it("can suspend a lane and resume the lane", async ({ fencepost }) => {
    await fencepost(["suspend", SIGNER, "--reason", "lunch"]);
    const { txId } = await json(fencepost(["send", ...from, "--to", RECIPIENT, "--json"]));
    const late = await fencepost(["tx", txId, "--wait", "--timeout", "200ms"]);
    expect(late).toMatchObject({ code: 6, stderr: expect.stringContaining(`fencepost explain ${txId}`) });
    expect((await fencepost(["explain", txId])).stdout).toMatch(/suspended/);
    expect((await fencepost(["watch", "--once"])).stdout).toContain(`  ALLOCATED  `);
    expect((await fencepost(["signers"])).stdout).toContain("suspended (OPERATOR)");
    const regretted = await json(fencepost(["send", ...from, "--to", RECIPIENT, "--json"]));
    expect((await fencepost(["cancel", regretted.txId, "--reason", "wrong order"])).code).toBe(0);
    await fencepost(["resume", SIGNER, "--reason", "back"]);
    expect((await fencepost(["tx", txId, "--wait"])).code).toBe(0);
    const cancelled = await fencepost(["tx", regretted.txId, "--wait"]);
    expect(cancelled).toMatchObject({ code: 5, stderr: expect.stringContaining("FAILED_FINAL/CANCELLED") });
    const [first] = (await json(fencepost(["completions", "--json"]))).items;
    expect(first).toMatchObject({ seq: 1, txId, state: "CONFIRMED" });
  });

  it("reserve a nonce, and release it", async ({ fencepost }) => {
    const { reservationId, nonce } = await json(fencepost(["nonces", "reserve", ...from, "--ttl", "5m", "--json"]));
    expect(nonce).toBe(0);
    expect((await fencepost(["nonces", "show", reservationId])).stdout).toContain("nonce 0");
    expect((await fencepost(["nonces", "release", reservationId])).stdout).toContain("is RELEASED");
    expect(await fencepost(["nonces", "release", reservationId])).toMatchObject({ code: 3 });
  });

  it("need no setting except a profile", async ({ node, home }) => {
    const variables = { HOME: home, XDG_CONFIG_HOME: "" };
    const run = async (argv: readonly string[]) => {
      const child = spawnFencepost(argv, { variables, directory: home });
      const { code } = await child.exited;
      return { code, stdout: child.stdout(), stderr: child.stderr() };
    };
    expect(await run(["profile", "add", "local", "--url", node.url])).toMatchObject({ code: 0, stderr: "" });
    expect((await run(["nodes"])).stdout).toContain(node.url);
    const client = createClient({ url: node.url });
    await client.suspend(SIGNER, { reason: "nothing is final before it is watched" });
    const { txId } = await client.send({ signer: SIGNER, payload: { to: RECIPIENT } });
    const watching = spawnFencepost(["watch", "--json", "--interval", "50ms"], { variables, directory: home });
    const states = (): readonly string[] => {
      const lines = watching.stdout().split("\n").slice(0, -1);
      return lines.map((line) => JSON.parse(line)).flatMap((each) => (each.txId === txId ? [each.state] : []));
    };
    await waitUntil(() => states().includes("ALLOCATED"), "what waits is told");
    await client.resume(SIGNER, { reason: "it is" });
    await waitUntil(() => states().at(-1) === "CONFIRMED", "how it ended is told");
    watching.signal("SIGINT");
    await watching.exited;
    expect(watching.stderr()).toBe("");
    expect(await run(["ready"])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ready +yes$/m) });
  });
});
