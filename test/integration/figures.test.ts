/** Figures, costs and ABIs on a real chain and a real database. */
import type { Address } from "fencepost/client";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { waitUntil } from "../support/wait-until.ts";

const RECIPIENT = "0x00000000000000000000000000000000000000AA";
const COUNT = 4;

describe("a node that has sent some transactions", () => {
  let stack: Stack;
  let fees: bigint;
  beforeAll(async () => {
    stack = await startFencepost({ databaseUrl: inject("postgres").adminUrl });
    const sent = Array.from({ length: COUNT }, (_, n) =>
      stack.client.send({ signer: stack.signers[n % 2] as Address, payload: { to: RECIPIENT, value: "5" } }),
    );
    const final = await Promise.all(
      sent.map(async (tx) => stack.client.waitFor((await tx).txId, { timeoutMs: 60_000 })),
    );
    fees = final.reduce(
      (sum, { receipt }) => sum + BigInt(receipt?.gasUsed ?? 0) * BigInt(receipt?.effectiveGasPrice ?? 0),
      0n,
    );
  }, 120_000);
  afterAll(() => stack?.stop());

  it("reports exactly what their receipts cost, by every group", async () => {
    for (const by of ["signer", "key", "day", "receiver"] as const) {
      const { items, next } = await stack.client.costs({ by });
      expect(next).toBeNull();
      expect(items.reduce((sum, item) => sum + BigInt(item.fees), 0n)).toBe(fees);
      expect(items.reduce((sum, item) => sum + BigInt(item.value), 0n)).toBe(5n * BigInt(COUNT));
      expect(items.reduce((sum, { confirmed, failed }) => sum + confirmed + failed, 0)).toBe(COUNT);
    }
    const [receiver] = (await stack.client.costs({ by: "receiver" })).items;
    expect(receiver?.group).toBe(RECIPIENT);
    const { items } = await stack.client.completionsPage({ include: "cost" });
    expect(items.reduce((sum, { cost }) => sum + BigInt(cost?.fees ?? 0), 0n)).toBe(fees);
  });

  it("counts them in buckets within seconds, of the chain and of each lane", async () => {
    const completed = async (query: { readonly signer?: Address }) => {
      const { buckets } = await stack.client.history({ chainId: stack.chainId, ...query });
      return buckets.reduce((sum, bucket) => sum + bucket.completed, 0);
    };
    await waitUntil(async () => (await completed({})) === COUNT, "the figures", { everyMs: 200, giveUpMs: 60_000 });
    expect(await completed({ signer: stack.signers[0] as Address })).toBe(COUNT / 2);
    const { buckets, signers, keys } = await stack.client.history({ chainId: stack.chainId });
    expect(buckets.reduce((sum, bucket) => sum + BigInt(bucket.fees), 0n)).toBe(fees);
    expect(buckets.some(({ finalityMs, offered, baseFee }) => finalityMs && offered && baseFee)).toBe(true);
    expect(signers).toHaveLength(2);
    expect(keys.map(({ completed: done }) => done)).toEqual([COUNT]);
  });

  it("lists those of a range of time", async () => {
    const { items } = await stack.client.list({ order: "oldest" });
    const times = items.map(({ createdAt }) => Date.parse(createdAt)).sort();
    const first = new Date(times[0] as number).toISOString();
    const after = new Date((times.at(-1) as number) + 1).toISOString();
    expect((await stack.client.list({ createdAfter: first, createdBefore: after })).items).toHaveLength(COUNT);
    expect((await stack.client.list({ createdBefore: first })).items).toHaveLength(0);
    expect((await stack.client.list({ createdAfter: after })).items).toHaveLength(0);
    expect((await stack.client.list({ createdBefore: after, limit: 3 })).next).not.toBeNull();
  });

  it("shows a call in words once its ABI is stored", async () => {
    const abi = ["function pay(address to, uint256 amount)"];
    await stack.client.putAbis({ items: [{ name: "Payouts", addresses: [RECIPIENT], abi }] });
    const payload = { to: RECIPIENT, function: "pay(address,uint256)", args: [RECIPIENT, 7n], gas: 100_000 } as const;
    const { txId } = await stack.client.send({ signer: stack.signers[2] as Address, payload, allowNoCode: true });
    expect((await stack.client.get(txId)).decoded).toEqual({
      contract: "Payouts",
      name: "pay",
      args: [
        { name: "to", value: RECIPIENT },
        { name: "amount", value: "7" },
      ],
    });
  });
});
