/**
 * The policy document in force. It is one row of the database, and every lane carries its stamp: a commit compares the
 * stamp of the lanes that it has locked with the one of the document that it judged by (adapters/postgres/commit).
 */
import { type ParsedPolicies, type PolicyWords, parsePolicies, unreadablePolicies } from "./parse.ts";
import type { Policies } from "./policy.ts";

type Document = Readonly<Record<string, unknown>>;

/** As the database has it. */
export interface PolicyRecord {
  /** Counts changes; 0: nobody has applied a document yet. */
  readonly version: number;
  /** Random for each change: after a failover that lost one, its version may be given to another document. */
  readonly stamp: string;
  readonly document: Document | null;
  /** Null throughout: nobody has applied a document yet. */
  readonly changedAt: Date | null;
  readonly changedBy: string | null;
  readonly reason: string | null;
}

export interface PolicyInForce extends PolicyRecord {
  /** Null: nothing is limited. */
  readonly policies: Policies | null;
}

/** Before the first read: the stamp of no document, so that no commit is judged by it. */
const NOT_READ: PolicyInForce = {
  ...{ version: 0, stamp: "", document: null, changedAt: null, changedBy: null, reason: null },
  policies: null,
};

export function inForce(record: PolicyRecord, words: PolicyWords): PolicyInForce {
  const { document } = record;
  return { ...record, policies: document === null ? null : readable(document, parsePolicies(document, words)) };
}

/** A document of a newer release may say what this one does not know: it is never ignored, nothing is allocated instead. */
function readable(document: Document, parsed: ParsedPolicies): Policies {
  return "policies" in parsed ? parsed.policies : unreadablePolicies(document, parsed.mistakes);
}

type Listener = (policy: PolicyInForce) => void;

/** The document in force as a process last read it. It may be old: what binds is each commit's proof. */
export class KnownPolicy {
  private known = NOT_READ;
  private readonly listeners: Listener[] = [];

  get current(): PolicyInForce {
    return this.known;
  }

  /** Called with every document that takes the place of another one, before anything is judged by it. */
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
