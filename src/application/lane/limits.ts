import { type FirstVerdict, foreseen, type PolicyUse, unapproved } from "../../domain/ledger/index.ts";
import type { Forbidden } from "../../domain/policy/policy.ts";
import { feeCap } from "../../domain/transaction/fees.ts";
import type { UnsignedTransaction } from "../../domain/transaction/transaction.ts";
import type { Spending } from "../../ports/lane-store.ts";
import type { PolicyStore } from "../../ports/policy-store.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { LimitPorts, Limits } from "./lane-ports.ts";
import type { OwnedLane } from "./owned-lane.ts";

export type { LimitPorts } from "./lane-ports.ts";

export function limitsOf(
  store: Pick<PolicyStore, "knownPolicy"> & Pick<QueryStore, "policyUse" | "messageUse">,
): Limits {
  return {
    get policies() {
      return store.knownPolicy.current.policies;
    },
    use: (lane, of) => store.policyUse(lane, of),
    messageUse: (lane) => store.messageUse(lane),
  };
}

/**
 * The policy that forbids signing this transaction's next payload; null if it is allowed, or there are no policies.
 * This early check only avoids useless work: the check in the commit, under the lane's lock, is binding.
 */
export async function forbiddenNow(
  { limits }: LimitPorts,
  { lane, term }: OwnedLane,
  { spends, ...of }: { readonly spends: Spending } & Parameters<Limits["use"]>[1],
): Promise<Forbidden | null> {
  if (!limits?.policies) return null;
  const use = await term.during(limits.use(lane, of));
  return forbidden(unapproved(foreseenBy(limits, use, spends)));
}

/** The policy that forbids this spending; null if the policies allow it or only require an approval. */
export function forbiddenBy(limits: Limits, use: PolicyUse, spends: Spending): Forbidden | null {
  return forbidden(foreseenBy(limits, use, spends));
}

function forbidden(verdict: FirstVerdict) {
  return "forbidden" in verdict ? verdict.forbidden : null;
}

/**
 * Checks the spending against the policy document that is in force after `use` was read, because the document may have
 * changed meanwhile.
 */
export function foreseenBy({ policies }: Limits, use: PolicyUse, spends: Spending): FirstVerdict {
  return policies === null ? { charges: [] } : foreseen(policies, use, spends);
}

/** The maximum that a payload can cost, as policies count it. */
export function spendingOf(
  { to, data, value, gas, fees }: UnsignedTransaction,
  about: Spending["about"],
  blobCost = 0n,
): Spending {
  return { to, data, value, gasCost: gas * feeCap(fees) + blobCost, about };
}
