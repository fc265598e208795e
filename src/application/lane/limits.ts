import { feeCap } from "../../domain/fees.ts";
import { foreseen, unapproved } from "../../domain/ledger/index.ts";
import type { Forbidden, Policies } from "../../domain/policy/policy.ts";
import type { UnsignedTransaction } from "../../domain/transaction.ts";
import type { Spending } from "../../ports/lane-store.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { OwnedLane } from "./owned-lane.ts";

export interface Limits {
  readonly policies: Policies;
  readonly use: QueryStore["policyUse"];
}

export interface LimitPorts {
  /** Absent: nothing is limited. */
  readonly limits?: Limits | null;
}

/**
 * Whether policies allow what is about to be signed for a transaction; null: they do, or there are none. Asked so that
 * nothing is signed and planned in vain. What binds is the commit's own judgement, behind the lane's lock.
 */
export async function forbiddenNow(
  { limits = null }: LimitPorts,
  { lane, term }: OwnedLane,
  { spends, ...of }: { readonly spends: Spending } & Parameters<Limits["use"]>[1],
): Promise<Forbidden | null> {
  if (limits === null) return null;
  const use = await term.during(limits.use(lane, of));
  const verdict = unapproved(foreseen(limits.policies, use, spends));
  return "forbidden" in verdict ? verdict.forbidden : null;
}

/** The most that a payload can cost. */
export function spendingOf(
  { to, data, value, gas, fees }: UnsignedTransaction,
  about: Spending["about"],
  blobCost = 0n,
): Spending {
  return { to, data, value, gasCost: gas * feeCap(fees) + blobCost, about };
}
