import { describe, expect, it } from "vitest";
import type { Hash } from "../../../../src/domain/lane.ts";
import { type AskChain, auditOf, type Query } from "../../../../src/main/dev/chaos/facts.ts";

const SIGNER = `0x${"a1".repeat(20)}` as const;
const HASH = `0x${"01".repeat(32)}` as const;
const OTHER = `0x${"02".repeat(32)}` as const;
const BLOCK = `0x${"b0".repeat(32)}` as const;

const ROW = {
  ...{ tx_id: "tx-1", signer: SIGNER, request_id: "request 1", nonce: "0", state: "CONFIRMED", sub_state: null },
  ...{ valid_until: null, expired_at: null, receipt: { txHash: HASH, blockHash: BLOCK, status: "success" } },
  attempts: [{ hash: HASH, kind: "first", foreign: false }],
  history: [{ event: "allocate", fromState: null, state: "CONFIRMED", token: 1 }],
};
const COMPLETION = { seq: "1", txId: "tx-1", state: "CONFIRMED", settled: true };
const LATE = { tx_id: "tx-1", event: "mine", token: "1", current: "2" };

const databaseWith =
  (row: object, late: readonly object[] = []): Query =>
  async (sql) =>
    (sql.includes("acquired_at") ? late : sql.includes("completion") ? [COMPLETION] : [{ ...ROW, ...row }]) as never[];

interface Sent {
  readonly hash: Hash;
  readonly from: string;
  readonly nonce: string;
}

/** One block with these transactions. */
const chainWith =
  (sent: readonly Sent[]): AskChain =>
  async (calls) =>
    calls.map(([method]) => {
      if (method === "eth_blockNumber") return "0x0";
      if (method === "eth_getTransactionReceipt") return { status: "0x1" };
      const transactions = sent.map((each) => ({
        value: "0x0",
        input: "0x",
        blockHash: BLOCK,
        blockNumber: "0x0",
        ...each,
      }));
      return { transactions };
    });

const MINED: Sent = { hash: HASH, from: SIGNER, nonce: "0x0" };

async function violationsFor({ row = {}, late = [], sent = [MINED], foreign = [] }: Partial<Case>) {
  const sources = { ask: chainWith(sent), sent: [HASH], foreign: new Set(foreign) };
  return (await auditOf(databaseWith(row, late), sources)).violations;
}

interface Case {
  readonly row: object;
  readonly late: readonly object[];
  readonly sent: readonly Sent[];
  readonly foreign: readonly Hash[];
}

describe("the audit of a database and a chain", () => {
  it("finds nothing if they agree", async () => {
    expect(await violationsFor({})).toEqual([]);
  });

  it.each<[what: string, facts: Partial<Case>, violation: string]>([
    [
      "a transaction that was mined under another nonce",
      { sent: [{ ...MINED, nonce: "0x1" }] },
      `I3: ${HASH} of tx-1 is on the chain as nonce 1 of ${SIGNER}`,
    ],
    [
      "a transaction that was mined for another signer",
      { sent: [{ ...MINED, from: `0x${"c3".repeat(20)}` }] },
      `I3: ${HASH} of tx-1 is on the chain as nonce 0 of 0x${"c3".repeat(20)}`,
    ],
    ["a write after a takeover", { late: [LATE] }, "I2: mine of tx-1 has token 1 after 2 took over"],
    [
      "a transaction that nobody knows",
      { sent: [MINED, { hash: OTHER, from: SIGNER, nonce: "0x1" }] },
      `I6: ${OTHER} is on the chain and not in the database`,
    ],
    ["a missing transaction", { sent: [] }, "I3: tx-1 is mined once, not 0 times"],
  ])("finds %s", async (_, facts, violation) => {
    expect(await violationsFor(facts)).toContain(violation);
  });

  it("accepts a transaction that another program sent with the signer's key", async () => {
    const sent = [MINED, { hash: OTHER, from: SIGNER, nonce: "0x1" }];
    expect(await violationsFor({ sent, foreign: [OTHER] })).toEqual([]);
  });
});
