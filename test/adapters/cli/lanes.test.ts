import { describe, expect, it } from "vitest";
import type { FencepostClient, SignerLane } from "../../../src/client/index.ts";
import { runCommand } from "../../support/command.ts";
import * as examples from "../../support/sample-answers.ts";

const lane = examples.signerLanes.items[0] as SignerLane;

async function run(argv: readonly string[], client: Partial<FencepostClient>) {
  return runCommand(argv, { actions: { connect: async () => client as FencepostClient } });
}

describe("fencepost signers", () => {
  it("lists every lane with its problems", async () => {
    const away = { since: "2026-01-01T00:00:00.000Z", reason: "vault is sealed", lies: false };
    const unowned = { since: "2026-01-01T00:00:00.000Z", reason: "no live node holds its key" };
    const items: SignerLane[] = [
      { ...lane, suspended: false, signerAway: null },
      { ...lane, suspended: true, suspendedBy: "HISTORY" },
      { ...lane, suspended: false, signerAway: away, owner: null, balance: null, cursor: null },
      { ...lane, suspended: false, signerAway: { ...away, reason: "another receiver", lies: true } },
      { ...lane, suspended: false, unowned, owner: null },
    ];
    const { stdout } = await run(["signers"], { signers: async () => items });
    const [heads = "", ...lines] = stdout.trimEnd().split("\n");
    expect(heads).toMatch(/^signer +name +chain +next +pending/);
    expect(lines.map((line) => line.split(/ {2,}/).at(-1))).toEqual([
      "ok",
      "suspended (HISTORY)",
      "away: vault is sealed",
      "answers falsely: another receiver",
      "no owner: no live node holds its key",
    ]);
  });

  it("names the owner of each lane on a terminal of 80 columns", async () => {
    const owner = { nodeId: "payments-7f9c5d-x2v8k-1-a0b1c2", instanceId: "i-1", url: "http://10.0.0.7:3000" };
    const balance = "9999123456789012345678";
    const items = [
      { ...lane, owner, balance },
      { ...lane, name: "payouts-2", owner, balance },
    ];
    const actions = { connect: async () => ({ signers: async () => items }) as unknown as FencepostClient };
    const screen = { columns: 80, rows: 30, colours: false };
    const lines = (await runCommand(["signers"], { actions, screen })).stdout.trimEnd().split("\n");
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(lines[0]).toMatch(/ node /);
    for (const line of lines.slice(1)) expect(line).toMatch(/ payme\S*…\S*[12] /);
  });

  it("prints one page if --limit is given", async () => {
    const signersPage = async () => ({ items: [lane], next: "cursor" });
    const { stdout } = await run(["signers", "--limit", "1"], { signersPage });
    expect(stdout).toContain("more: fencepost signers --after cursor\n");
    expect((await run(["signers"], { signers: async () => [] })).stdout).toBe("there is no signer\n");
  });

  it("prints one lane with its nonce gaps and the operators' decisions", async () => {
    const at = "2026-01-01T00:00:00.000Z";
    const decisions = [
      { action: "suspend", actor: "operator:ops", reason: "lunch", nodeId: null, fencingToken: 1, at },
    ];
    const holes = [
      { nonce: 5, why: lane.holes[0]?.why ?? ("EXPIRED" as never), detail: "nothing holds it", since: at },
    ];
    const signer = async () => [{ ...lane, decisions, holes }];
    const { stdout } = await run(["signers", lane.signer], { signer });
    expect(stdout).toContain("nonce 5: nothing holds it");
    expect(stdout).toContain("suspend, operator:ops: lunch");
  });

  it("requires a reason to suspend or resume a lane, or to set its next nonce from the chain", async () => {
    for (const action of ["suspend", "resume", "realign"]) {
      expect(await run([action, lane.signer], {})).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("--reason"),
      });
    }
  });
});

describe("fencepost nonces", () => {
  it("prints until when a nonce is reserved, and which transaction has used it", async () => {
    const { reserved: kept } = examples;
    const { stdout } = await run(["nonces", "show", "id"], { reservation: async () => kept });
    expect(stdout).toBe(
      `${kept.reservationId}: nonce ${kept.nonce} of ${kept.signer} on chain ${kept.chainId} is RESERVED until ${kept.expiresAt}\n`,
    );
    const markUsed = async () => examples.trackedTransaction;
    const { stdout: used } = await run(["nonces", "used", "id", "0x"], { markUsed });
    expect(used).toContain(`followed: transaction ${examples.trackedTransaction.txId}`);
  });
});

describe("fencepost ready", () => {
  it("exits with code 1 if the node is not ready", async () => {
    const look = async () => ({ status: 503, text: JSON.stringify(examples.notReady) });
    const { code, stdout } = await runCommand(["ready"], { actions: { look } });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^ready +no$/m);
  });

  it("prints when each chain's head was first seen, because it may be old", async () => {
    const { chains, ...rest } = examples.ready;
    const other = { chainId: 10, reachable: true, head: 7, headSince: null, signersAway: 1 };
    const look = async () => ({ status: 200, text: JSON.stringify({ ...rest, chains: [...chains, other] }) });
    const { stdout } = await runCommand(["ready"], { actions: { look } });
    expect(stdout).toContain("chain 31337  at block 1204 (4 s ago)\n");
    expect(stdout).toContain("chain 10     at block 7, 1 signers away\n");
  });

  it("refuses a response that does not come from a Fencepost node", async () => {
    const look = async () => ({ status: 200, text: "<html>" });
    expect(await runCommand(["health"], { actions: { look } })).toMatchObject({
      code: 1,
      stderr: "fencepost: the answer is not from a Fencepost node: is --url right?\n",
    });
  });
});
