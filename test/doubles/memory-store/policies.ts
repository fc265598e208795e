import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { inForce, type PolicyInForce } from "../../../src/domain/policy/in-force.ts";
import type { PolicyChange, PolicyChanged } from "../../../src/ports/policy-store.ts";
import type { DatabaseState } from "./state.ts";

const codec = createCodec();

export function policyInForce({ policy }: DatabaseState): PolicyInForce {
  return inForce(policy, codec);
}

export function changePolicy(state: DatabaseState, change: PolicyChange, now: Date): PolicyChanged["outcome"] {
  const before = policyInForce(state);
  const { policies, actor, reason, expectedVersion } = change;
  if (before.policies?.hash === policies.hash) return "unchanged";
  if (expectedVersion !== null && expectedVersion !== before.version) return "conflict";
  state.policy = {
    ...{ version: before.version + 1, stamp: `${++state.lastStamp}`, document: policies.document },
    ...{ changedAt: now, changedBy: actor, reason },
  };
  return "changed";
}
