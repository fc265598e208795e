/**
 * The policy document in force. It is one row of the database with a random value for each version, its `stamp`. Every
 * lane stores this value too. A commit compares the value of the lanes that it locks with that of the document that it
 * used (adapters/postgres/commit).
 */
import { type ParsedPolicies, parsePolicies, unreadablePolicies } from "./parse.ts";
import type { PolicyWords } from "./place.ts";
import type { Policies } from "./policy.ts";

type Document = Readonly<Record<string, unknown>>;

/** The policy document's row in the database. */
export interface PolicyRecord {
  /** Number of changes of the policy document; 0: no document was applied yet. */
  readonly version: number;
  /**
   * Random value, new for each change. The version alone is not unique: after a failover that lost a change, another
   * document may get the same version.
   */
  readonly stamp: string;
  readonly document: Document | null;
  /** `changedAt`, `changedBy` and `reason` are null if no document was applied yet. */
  readonly changedAt: Date | null;
  readonly changedBy: string | null;
  readonly reason: string | null;
}

export interface PolicyInForce extends PolicyRecord {
  /** Parsed policies; null: nothing is limited. */
  readonly policies: Policies | null;
}

/**
 * Placeholder until the policy document was read for the first time. Its `stamp` belongs to no document, so no commit
 * uses it: the document is read first.
 */
const NOT_READ: PolicyInForce = {
  version: 0,
  stamp: "",
  document: null,
  changedAt: null,
  changedBy: null,
  reason: null,
  policies: null,
};

export function inForce(record: PolicyRecord, words: PolicyWords): PolicyInForce {
  const { document } = record;
  return { ...record, policies: document === null ? null : readable(document, parsePolicies(document, words)) };
}

/**
 * Policies of a stored document, which may have been written by a newer release and contain unknown rules. Such a
 * document is never ignored: no nonce is allocated under it.
 */
function readable(document: Document, parsed: ParsedPolicies) {
  return "policies" in parsed ? parsed.policies : unreadablePolicies(document, parsed.mistakes);
}

type Listener = (policy: PolicyInForce) => void;

/**
 * The policy document as this process last read it. It may be outdated: each commit checks that it used the one in
 * force.
 */
export class KnownPolicy {
  private known = NOT_READ;
  private readonly listeners: Listener[] = [];

  get current(): PolicyInForce {
    return this.known;
  }

  /** Registers a listener that is called with every new policy document before it is used. */
  onChange(listener: Listener): void {
    this.listeners.push(listener);
  }

  take(policy: PolicyInForce): PolicyInForce {
    if (policy.stamp === this.known.stamp) return this.known;
    this.known = policy;
    for (const listener of this.listeners) listener(policy);
    return policy;
  }
}
