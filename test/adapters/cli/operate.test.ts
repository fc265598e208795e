import { describe, expect, it } from "vitest";
import { EXIT_CODES } from "../../../src/adapters/cli/failure.ts";
import type { RemoteOptions } from "../../../src/adapters/cli/remote.ts";
import { FencepostApiError, type FencepostClient, type Transaction } from "../../../src/client/index.ts";
import { runCommand } from "../../support/command.ts";
import { cancelling } from "../../support/sample-answers.ts";

const { txId } = cancelling;

/** Runs a command against a fake node that records the calls. */
async function run(argv: readonly string[], answer: () => Promise<Transaction> = async () => cancelling) {
  const calls: unknown[][] = [];
  const connected: RemoteOptions[] = [];
  const note =
    (action: string) =>
    (id: string, request: unknown, options: object = {}) => {
      calls.push([action, id, request, ...(Object.keys(options).length === 0 ? [] : [options])]);
      return answer();
    };
  const client = {
    cancel: note("cancel"),
    replace: note("replace"),
    resubmit: note("resubmit"),
    reprice: note("reprice"),
    approve: note("approve"),
    reject: note("reject"),
  } as Partial<FencepostClient> as FencepostClient;
  const actions = {
    connect: async (options: RemoteOptions) => {
      connected.push(options);
      return client;
    },
  };
  return { ...(await runCommand(argv, { actions })), calls, connected };
}

describe("the operator commands of the CLI", () => {
  it.each(["cancel", "reprice"])("include %s, with or without a gas price", async (action) => {
    const reason = ["--reason", "too slow"];
    expect((await run([action, txId, ...reason])).calls).toEqual([[action, txId, { reason: "too slow" }]]);
    const priced = ["--max-fee-per-gas", "5000000000", "--max-priority-fee-per-gas", "1000000000"];
    expect((await run([action, txId, ...reason, ...priced])).calls).toEqual([
      [action, txId, { reason: "too slow", maxFeePerGas: "5000000000", maxPriorityFeePerGas: "1000000000" }],
    ]);
    expect((await run([action, txId, ...reason, "--gas-price", "7"])).calls).toEqual([
      [action, txId, { reason: "too slow", gasPrice: "7" }],
    ]);
  });

  it("include resubmit and replace", async () => {
    expect((await run(["resubmit", txId, "--reason", "r"])).calls).toEqual([["resubmit", txId, { reason: "r" }]]);
    const payload = { to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", value: "1" };
    const { calls } = await run(["replace", txId, "--reason", "r", "--payload", JSON.stringify(payload)]);
    expect(calls).toEqual([["replace", txId, { reason: "r", payload }]]);
    const parts = ["--to", payload.to, "--value", "1gwei", "--data", "0x01"];
    expect((await run(["replace", txId, "--reason", "r", ...parts])).calls).toEqual([
      ["replace", txId, { reason: "r", payload: { to: payload.to, value: "1000000000", data: "0x01" } }],
    ]);
  });

  it.each(["approve", "reject"])("include %s, which requires a reason", async (action) => {
    const { calls, stdout } = await run([action, txId, "--reason", "checked"]);
    expect(calls).toEqual([[action, txId, { reason: "checked" }]]);
    expect(stdout).toContain(`${action}: transaction ${txId}`);
    expect((await run([action, txId])).code).toBe(2);
  });

  it.each(["cancel", "resubmit", "approve"])(
    "include %s, optionally with an idempotency key that the operator chooses",
    async (action) => {
      const { calls } = await run([action, txId, "--reason", "r", "--idempotency-key", "ticket-9"]);
      expect(calls).toEqual([[action, txId, { reason: "r" }, { idempotencyKey: "ticket-9" }]]);
    },
  );

  it("print the transaction's new state, readable or as JSON", async () => {
    const { stdout, code } = await run(["cancel", txId, "--reason", "r"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`cancel: transaction ${txId} (nonce 7) is TRACKING/PENDING\n`);
    expect(stdout).toMatch(/attempt 2 {2}cancel {7}0x91b2/);
    expect(JSON.parse((await run(["--json", "cancel", txId, "--reason", "r"])).stdout)).toEqual(cancelling);
  });

  it("call the node given by --url with the key given by --api-key", async () => {
    const { connected } = await run(["cancel", txId, "--reason", "r", "--url", "http://n:1", "--api-key", "k"]);
    expect(connected).toMatchObject([{ url: "http://n:1", apiKey: "k" }]);
  });

  it("print one line and exit with code 3 if the transaction is already final", async () => {
    const detail = `transaction ${txId} is CONFIRMED: it was mined in block 12`;
    const conflict = () => Promise.reject(new FencepostApiError({ code: "CONFLICT", status: 409, detail }));
    const { code, stderr } = await run(["cancel", txId, "--reason", "r"], conflict);
    expect(code).toBe(EXIT_CODES.refused);
    expect(stderr).toBe(`fencepost: CONFLICT: ${detail}\n`);
  });

  it.each([
    [["cancel", txId]],
    [["cancel", "--reason", "r"]],
    [["replace", txId, "--reason", "r"]],
    [["replace", txId, "--reason", "r", "--value", "1"]],
    [["replace", txId, "--reason", "r", "--value", "1", "--payload", "{}"]],
    [["replace", txId, "--reason", "r", "--payload", "{"]],
    [["reprice", txId, "--reason", "r", "--gas-price", "1.5"]],
    [["resubmit", txId, "--reason", "r", "--gas-price", "1"]],
  ])("refuse the arguments %j before a node is called", async (argv) => {
    const { code, calls } = await run(argv);
    expect(code).toBe(2);
    expect(calls).toEqual([]);
  });
});
