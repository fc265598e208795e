import type { Costs, CostsQuery, FencepostClient } from "../../client/index.ts";

type Cost = Costs["items"][number];

/** Costs over a whole range, added up from as many calls as it takes. */
export async function everyCost(readPage: FencepostClient["costs"], query: CostsQuery = {}): Promise<Costs> {
  const first = await readPage(query);
  const { by, from, to } = first;
  const sums = new Map<string, Cost>();
  const add = (cost: Cost) => {
    const key = JSON.stringify([cost.chainId, cost.group]);
    const sum = sums.get(key);
    sums.set(key, sum === undefined ? cost : added(sum, cost));
  };
  first.items.forEach(add);
  // The range of the first call: without `to`, each call would end at another time.
  for (let after = first.next; after !== null; ) {
    const page = await readPage({ ...query, from, to, after });
    page.items.forEach(add);
    after = page.next;
  }
  const items = [...sums.values()].sort((a, b) => a.chainId - b.chainId || compare(by, a, b));
  return { by, from, to, items, next: null };
}

function added(a: Cost, b: Cost): Cost {
  const [confirmed, failed] = [a.confirmed + b.confirmed, a.failed + b.failed];
  const sum = (name: "fees" | "failedFees" | "value") => `${BigInt(a[name]) + BigInt(b[name])}` as const;
  return {
    ...a,
    transactions: a.transactions + b.transactions,
    confirmed,
    failed,
    failedShare: failed === 0 ? 0 : Math.round((failed / (confirmed + failed)) * 10_000) / 10_000,
    fees: sum("fees"),
    failedFees: sum("failedFees"),
    value: sum("value"),
  };
}

function compare(by: Costs["by"], a: Cost, b: Cost) {
  const difference = by === "day" ? 0n : BigInt(b.fees) - BigInt(a.fees);
  if (difference !== 0n) return difference > 0n ? 1 : -1;
  return (a.group ?? "") < (b.group ?? "") ? -1 : 1;
}
