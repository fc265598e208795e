import { describe, expect, it } from "vitest";
import { everyCost } from "../../../src/adapters/cli/every-cost.ts";
import type { Costs, CostsQuery } from "../../../src/client/index.ts";

const RANGE = { from: "2026-01-01T00:00:00.000Z", to: "2026-01-02T00:00:00.000Z" };

const cost = (group: string | null, chainId: number, fees: `${bigint}`): Costs["items"][number] => ({
  ...{ group, chainId, transactions: 2, confirmed: 1, failed: 1, failedShare: 0.5 },
  ...{ fees, failedFees: "1", value: `${2n ** 70n}` },
});

describe("costs over several calls", () => {
  it("are added up by group and chain, over the range of the first call", async () => {
    const asked: CostsQuery[] = [];
    const pages = [
      [cost("a", 1, "5"), cost(null, 1, "1")],
      [cost("b", 1, "9"), cost("a", 1, "6"), cost("a", 2, "1")],
    ];
    const readPage = async (query: CostsQuery = {}): Promise<Costs> => {
      asked.push(query);
      const items = pages[asked.length - 1] ?? [];
      return { by: "key", ...RANGE, items, next: asked.length < pages.length ? "more" : null };
    };
    const { items, next } = await everyCost(readPage, { by: "key", chainId: 1 });
    expect(asked).toEqual([
      { by: "key", chainId: 1 },
      { by: "key", chainId: 1, ...RANGE, after: "more" },
    ]);
    expect(next).toBeNull();
    expect(items.map(({ group, chainId, fees }) => [group, chainId, fees])).toEqual([
      ["a", 1, "11"],
      ["b", 1, "9"],
      [null, 1, "1"],
      ["a", 2, "1"],
    ]);
    expect(items[0]).toMatchObject({ transactions: 4, confirmed: 2, failed: 2, failedShare: 0.5, failedFees: "2" });
    expect(items[0]?.value).toBe(`${2n ** 71n}`);
  });
});
