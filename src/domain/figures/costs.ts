/**
 * Costs of transactions: fees that were paid, value that was moved, and the part that failed. Exact: each amount is
 * that of a final transaction's receipt. Amounts of different chains are different currencies and are never added.
 */
import type { Address, Hex, Lane } from "../lane.ts";
import type { State } from "../transaction/transitions.ts";

export const COST_GROUPS = ["signer", "key", "day", "receiver"] as const;
export type CostGroup = (typeof COST_GROUPS)[number];

/** Cost of one transaction. Fees and value are 0 if none of its own payloads is final. */
export interface TransactionCost {
  readonly txId: string;
  readonly lane: Lane;
  /** Name of the API key that created the transaction; null: no key was required. */
  readonly owner: string | null;
  readonly state: State;
  readonly createdAt: Date;
  /** Receiver of the mined payload, else of the caller's; null for a deployment. */
  readonly receiver: Address | null;
  readonly fees: bigint;
  /** Value that the mined payload transferred; 0 if it reverted. */
  readonly value: bigint;
  /**
   * Signed bytes of an operator's replacement that was mined. Its receiver and value are in these bytes alone:
   * `receiver` and `value` are the caller's.
   */
  readonly replacement?: Hex;
}

/** Costs of one group on one chain. */
export interface Cost {
  readonly group: string | null;
  readonly chainId: number;
  readonly transactions: number;
  readonly confirmed: number;
  readonly failed: number;
  readonly fees: bigint;
  readonly failedFees: bigint;
  readonly value: bigint;
}

const GROUP_OF: Readonly<Record<CostGroup, (cost: TransactionCost) => string | null>> = {
  signer: ({ lane }) => lane.signer,
  key: ({ owner }) => owner,
  day: ({ createdAt }) => createdAt.toISOString().slice(0, 10),
  receiver: ({ receiver }) => receiver,
};

/** Adds up costs by group and chain. Groups are ordered by chain, then by fees; days by date. */
export class CostSums {
  private readonly by;
  private readonly sums = new Map<string, Cost>();

  constructor(by: CostGroup) {
    this.by = by;
  }

  add(cost: TransactionCost): void {
    const group = GROUP_OF[this.by](cost);
    const { chainId } = cost.lane;
    const isFailed = cost.state === "FAILED_FINAL";
    const key = `${chainId} ${group === null ? "" : `=${group}`}`;
    const sum = this.sums.get(key) ?? { ...NOTHING, group, chainId };
    this.sums.set(key, {
      ...sum,
      transactions: sum.transactions + 1,
      confirmed: sum.confirmed + (cost.state === "CONFIRMED" ? 1 : 0),
      failed: sum.failed + (isFailed ? 1 : 0),
      fees: sum.fees + cost.fees,
      failedFees: sum.failedFees + (isFailed ? cost.fees : 0n),
      value: sum.value + cost.value,
    });
  }

  all(): readonly Cost[] {
    return [...this.sums.values()].sort((a, b) => a.chainId - b.chainId || this.compare(a, b));
  }

  private compare(a: Cost, b: Cost) {
    const byGroup = (a.group ?? "") < (b.group ?? "") ? -1 : 1;
    if (this.by === "day" || a.fees === b.fees) return byGroup;
    return a.fees > b.fees ? -1 : 1;
  }
}

const NOTHING = { transactions: 0, confirmed: 0, failed: 0, fees: 0n, failedFees: 0n, value: 0n };

/** Share of the final transactions that failed. */
export function failedShareOf({ confirmed, failed }: Pick<Cost, "confirmed" | "failed">): number {
  return failed === 0 ? 0 : Math.round((failed / (confirmed + failed)) * 10_000) / 10_000;
}
