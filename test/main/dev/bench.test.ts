import { describe, expect, it } from "vitest";
import type { CreateTransaction, FencepostClient } from "../../../src/client/index.ts";
import { bench } from "../../../src/main/dev/demo/bench.ts";
import * as examples from "../../support/sample-answers.ts";

const OPTIONS = { transactions: 20, callers: 4 };
const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

/** A fake node that refuses every `nth` create. */
function ports(nth = Number.POSITIVE_INFINITY) {
  const sent: unknown[] = [];
  const client = {
    send: async (intent: CreateTransaction) => {
      sent.push(intent);
      if (sent.length % nth === 0) throw new Error("refused");
      return { ...examples.created, txId: `tx-${sent.length}` };
    },
    waitFor: async () => examples.transaction,
  };
  const progress = { say() {}, phase() {}, update() {}, end() {} };
  return { sent, progress, newId: () => "run", connect: async () => client as unknown as FencepostClient };
}

describe("a benchmark by fencepost bench", () => {
  // protects [The command line] src/main/dev/demo/bench.ts
  it("requires a signer if the user names a node", async () => {
    const node = ports();
    for (const named of [{ url: "http://n" }, { profile: "production" }]) {
      await expect(bench({ ...OPTIONS, ...named }, node)).rejects.toThrow("--signer is missing");
    }
    expect(node.sent).toEqual([]);
  });

  it("sends zero-value transfers with distinct request ids", async () => {
    const node = ports(5);
    const report = await bench({ ...OPTIONS, url: "http://n", signer: SIGNER }, node);
    expect(report).toMatchObject({ node: "http://n", accepted: 16, failed: 4 });
    expect(report.latencyMs.p50).toBeLessThanOrEqual(report.latencyMs.max);
    expect(report.confirmedSeconds).not.toBeNull();
    const ids = node.sent.map((intent) => (intent as { requestId: string }).requestId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const intent of node.sent) expect(intent).toMatchObject({ payload: { to: SIGNER, value: 0n } });
  });

  it("fails with the first refusal if no create is accepted", async () => {
    await expect(bench({ ...OPTIONS, url: "http://n", signer: SIGNER }, ports(1))).rejects.toThrow("refused");
  });
});
