import type { KnownPolicy, PolicyInForce } from "../domain/policy/in-force.ts";
import type { Policies } from "../domain/policy/policy.ts";

export interface PolicyChange {
  readonly policies: Pick<Policies, "document" | "hash">;
  /**
   * Author of the change: `operator:<key name>`, or `node:<node id>` if a node stored the document from its
   * configuration.
   */
  readonly actor: string;
  readonly reason: string;
  readonly nodeId: string;
  /** Version that must be in force for the change to be made; null: any version. */
  readonly expectedVersion: number | null;
}

export interface PolicyChanged {
  /**
   * Outcome of a policy change. "unchanged": this document was already in force. "conflict": another version than
   * expected is in force, and nothing was changed.
   */
  readonly outcome: "changed" | "unchanged" | "conflict";
  readonly inForce: PolicyInForce;
}

/** Store of the one policy document of all nodes. */
export interface PolicyStore {
  /**
   * The policy document that this process last read. Each commit checks that it is still in force; otherwise it is read
   * again.
   */
  readonly knownPolicy: Pick<KnownPolicy, "current" | "onChange">;
  readPolicy(): Promise<PolicyInForce>;
  /**
   * Changes the policy document. Once this resolves, the change is durable, and every commit on every node obeys it.
   */
  changePolicy(change: PolicyChange): Promise<PolicyChanged>;
}
