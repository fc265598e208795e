import { describe, expect, it } from "vitest";
import { CostSums, failedShareOf, type TransactionCost } from "../../../src/domain/figures/costs.ts";
import type { Address } from "../../../src/domain/lane.ts";

const address = (n: number) => `0x${n.toString(16).padStart(40, "0")}` as Address;

function cost(of: Partial<TransactionCost> = {}): TransactionCost {
  return {
    txId: "019a4b7e-0000-7000-8000-000000000001",
    lane: { chainId: 1, signer: address(1) },
    owner: "shop",
    state: "CONFIRMED",
    createdAt: new Date("2026-11-02T23:59:59.999Z"),
    receiver: address(9),
    fees: 10n,
    value: 100n,
    ...of,
  };
}

const sumsBy = (by: "signer" | "key" | "day" | "receiver", ...costs: readonly TransactionCost[]) => {
  const sums = new CostSums(by);
  for (const each of costs) sums.add(each);
  return sums.all();
};

describe("sums of costs", () => {
  const failed = cost({ state: "FAILED_FINAL", fees: 3n, value: 0n });
  const open = cost({ state: "TRACKING", fees: 0n, value: 0n });

  it("count final and open transactions apart, and the fees of failed ones", () => {
    expect(sumsBy("signer", cost(), failed, open)).toEqual([
      {
        ...{ group: address(1), chainId: 1, transactions: 3, confirmed: 1, failed: 1 },
        ...{ fees: 13n, failedFees: 3n, value: 100n },
      },
    ]);
  });

  it("never add amounts of two chains, and list the dearest of a chain first", () => {
    const elsewhere = (fees: bigint, signer: Address) => cost({ lane: { chainId: 5, signer }, fees });
    const sums = sumsBy("signer", elsewhere(1n, address(1)), elsewhere(2n ** 70n, address(2)), cost());
    expect(sums.map(({ chainId, group, fees }) => [chainId, group, fees])).toEqual([
      [1, address(1), 10n],
      [5, address(2), 2n ** 70n],
      [5, address(1), 1n],
    ]);
  });

  it("group by key, by UTC day oldest first, and by receiver", () => {
    const nextDay = cost({ createdAt: new Date("2026-11-03T00:00:00.000Z"), owner: null, receiver: null, fees: 99n });
    const groups = (by: "key" | "day" | "receiver") => sumsBy(by, nextDay, cost()).map(({ group }) => group);
    expect(groups("key")).toEqual([null, "shop"]);
    expect(groups("day")).toEqual(["2026-11-02", "2026-11-03"]);
    expect(groups("receiver")).toEqual([null, address(9)]);
  });

  it("keep transactions without a key apart from those of a key with an empty name", () => {
    expect(sumsBy("key", cost({ owner: null }), cost({ owner: "" }))).toHaveLength(2);
  });

  it("state the share of final transactions that failed", () => {
    expect(failedShareOf({ confirmed: 0, failed: 0 })).toBe(0);
    expect(failedShareOf({ confirmed: 117, failed: 2 })).toBe(0.0168);
    expect(failedShareOf({ confirmed: 0, failed: 4 })).toBe(1);
  });
});
