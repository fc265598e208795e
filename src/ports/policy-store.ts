import type { KnownPolicy, PolicyInForce } from "../domain/policy/in-force.ts";
import type { Policies } from "../domain/policy/policy.ts";

export interface PolicyChange {
  readonly policies: Pick<Policies, "document" | "hash">;
  /** `operator:<key name>`, or `node:<node id>` for what was seeded. */
  readonly actor: string;
  readonly reason: string;
  readonly nodeId: string;
  /** Null: whichever is in force. */
  readonly expectedVersion: number | null;
}

export interface PolicyChanged {
  /** "unchanged": this document was in force already. "conflict": another version than was expected is. Nothing was done then. */
  readonly outcome: "changed" | "unchanged" | "conflict";
  readonly inForce: PolicyInForce;
}

/** The one policy document of all nodes. */
export interface PolicyStore {
  /** As this process last read it; commits judge by it, and read it again where it is not the one in force. */
  readonly knownPolicy: Pick<KnownPolicy, "current" | "onChange">;
  readPolicy(): Promise<PolicyInForce>;
  /** Durable and obeyed by every commit on every node from the moment that it resolves. */
  changePolicy(change: PolicyChange): Promise<PolicyChanged>;
}
