/**
 * Follows the policy document in force: whoever holds the keys re-checks by it, and people are alerted where this node cannot
 * read it, or has a file that says something else.
 */

import type { PolicyInForce } from "../../domain/policy/in-force.ts";
import type { Policies } from "../../domain/policy/policy.ts";
import type { AlertCode } from "../../domain/troubles/alerts.ts";
import type { PolicyStore } from "../../ports/policy-store.ts";
import type { Ports } from "../../ports/ports.ts";
import { StandingAlerts } from "../standing-alerts.ts";

interface FollowPorts extends Pick<Ports, "telemetry" | "signer"> {
  readonly store: Pick<PolicyStore, "knownPolicy">;
  /** Of this node's file or configuration. */
  readonly policies?: Policies | null;
}

export function followPolicies({ store, telemetry, signer, policies: own = null }: FollowPorts): void {
  const alerts = new StandingAlerts(telemetry);
  const judge = (code: AlertCode, message: string | null) =>
    alerts.judge({ code, message: message ?? "the node works by the policy document in force" }, message !== null);
  store.knownPolicy.onChange((policy) => {
    signer.adoptPolicies?.(policy.policies?.signers ?? new Map());
    judge("POLICY_UNREADABLE", unreadable(policy));
    judge("POLICY_FILE_DIFFERS", differing(policy, own));
  });
}

function unreadable({ version, policies }: PolicyInForce) {
  const mistakes = policies?.unreadable ?? [];
  if (mistakes.length === 0) return null;
  return `this node gives no nonce: it cannot read version ${version} of the policy document (${mistakes.join("; ")})`;
}

/** Before the first document there is nothing to differ from: this node's own seeds it. */
function differing({ version, policies }: PolicyInForce, own: Policies | null) {
  if (version === 0 || own === null || policies?.hash === own.hash) return null;
  return `the policies of this node's file or configuration are not used: version ${version} of the document in the database is in force, and says something else`;
}
