/** Output on a terminal of 60 columns: what matters most is still there, and no line wraps. */
import { describe, expect, it } from "vitest";
import type { FencepostClient, History, SignerLane, Transaction } from "../../../src/client/index.ts";
import { runCommand } from "../../support/command.ts";
import * as examples from "../../support/sample-answers.ts";

const COLUMNS = 60;
const screen = { columns: COLUMNS, rows: 30, colours: false };
const { transaction } = examples;
const lane = examples.signerLanes.items[0] as SignerLane;

async function run(argv: readonly string[], client: Partial<FencepostClient>) {
  const ended = await runCommand(argv, { screen, actions: { connect: async () => client as FencepostClient } });
  for (const line of `${ended.stdout}${ended.stderr}`.split("\n"))
    if (!/^hash +0x/.test(line)) expect(line.length, line).toBeLessThanOrEqual(COLUMNS);
  return ended;
}

describe("a terminal of 60 columns", () => {
  it("shows the state of each lane rather than its node", async () => {
    const owner = { nodeId: "payments-7f9c5d-x2v8k-1-a0b1c2", instanceId: "i-1", url: "http://10.0.0.7:3000" };
    const items: SignerLane[] = [
      { ...lane, owner, balance: "9999123456789012345678", suspended: false },
      { ...lane, owner, suspended: true, suspendedBy: "OPERATOR" },
    ];
    const { stdout } = await run(["signers"], { signers: async () => items });
    expect(stdout).toMatch(/^signer .* state$/m);
    expect(stdout.replace(/\s+/g, " ")).toContain("suspended (OPERATOR)");
    expect(stdout).not.toMatch(/ether|as of/);
    const { stdout: calm } = await run(["signers"], { signers: async () => items.slice(0, 1) });
    expect(calm).toMatch(/^signer .* ether +as of +state$/m);
    expect(calm).toContain("9999.1234 ");
  });

  it("shows the whole state and age of each transaction rather than the caller's id", async () => {
    const items: Transaction[] = [
      { ...transaction, createdAt: "2025-12-31T23:58:00.000Z" },
      { ...transaction, state: "TRACKING", subState: "BROADCAST" },
    ];
    const { stdout } = await run(["list"], { list: async () => ({ items, next: null }) });
    expect(stdout).toContain("TRACKING/BROADCAST");
    expect(stdout.split("\n")[0]).toMatch(/ state( +created)? *$/);
  });

  it("shows fees in full rather than counts", async () => {
    const bucket = { at: "2025-12-31T23:00:00.000Z", created: 5, completed: 5, failed: 1, fees: "105000084483" };
    const buckets = [{ ...bucket, troubles: [{ code: "CHAIN_STALLED", count: 2 }] }];
    const answer = { from: "f", to: "t", buckets, keys: [] } as unknown as History;
    const { stdout } = await run(["figures"], { history: async () => answer });
    expect(stdout).toContain("0.000000105000084483 ether");
    expect(stdout).toContain("CHAIN_STALLED 2");
  });

  it("leaves the chain out of a followed change, and never the transaction's id", async () => {
    const open: Transaction = { ...transaction, state: "TRACKING", subState: "BROADCAST" };
    const list: FencepostClient["list"] = async ({ state } = {}) => ({
      items: state === "TRACKING" ? [open] : [],
      next: null,
    });
    const { stdout } = await run(["watch", "--once"], { list });
    expect(stdout).toMatch(new RegExp(`TRACKING/BROADCAST {2}nonce ${open.nonce} {2}${open.txId.slice(0, 4)}\\S*…`));
  });

  it("shortens the hash of each state that --wait prints", async () => {
    const { stderr } = await run(["tx", transaction.txId, "--wait"], {
      get: async () => ({ ...transaction, state: "CONFIRMED", subState: null, txHash: `0x${"ab".repeat(32)}` }),
    });
    expect(stderr).toMatch(/^CONFIRMED 0xab\S+…\S+ab\n$/);
  });

  it("wraps what is wrong, and never says that something will be known", async () => {
    const item = {
      ...{ id: "x", severity: "WARNING", code: "HELD", sentence: "It is held back. ".repeat(9), since: null },
      ...{ chainId: 1, signer: null, txId: transaction.txId, nonce: 7, nodeId: null, endpoint: null, waiting: 0 },
      // The node that reported it has a clock that is ahead of the one that answers.
      ...{ asOf: "2026-01-01T00:00:00.900Z", actions: [] },
    } as const;
    const attention = async () => ({
      revision: "1",
      asOf: "2026-01-01T00:00:00.000Z",
      items: [item],
      more: 0,
      past: [],
    });
    const { stdout } = await run(["attention"], { attention } as unknown as FencepostClient);
    expect(stdout.replace(/\s+/g, " ")).toContain(`WARNING HELD ${transaction.txId} (known 0 s ago)`);
  });
});
