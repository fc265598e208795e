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

/** Puts policies into force that a newer release has written, with a rule that this one does not know. */
export function applyUnreadable(state: DatabaseState, now: Date): void {
  const { version, document } = state.policy;
  state.policy = {
    ...{ version: version + 1, stamp: `${++state.lastStamp}`, document: { ...document, tomorrow: {} } },
    ...{ changedAt: now, changedBy: "a newer release", reason: "" },
  };
}
