import type { Hex, Lane } from "../lane.ts";
import type { Forbidden } from "../policy/policy.ts";
import type { State } from "../transitions.ts";
import type { NonceOutcome } from "./nonce-writes.ts";
import type { SuspendedBy } from "./writes.ts";

/** What became of a write that the ledger judged. */
export type LedgerOutcome =
  | { readonly status: "allocated"; readonly items: readonly AllocateFate[]; readonly cursor: number }
  | { readonly status: "applied"; readonly items: readonly MoveFate[] }
  | { readonly status: "aligned"; readonly cursor: number }
  | { readonly status: "reconciled"; readonly cursor: number; readonly suspendedBy: SuspendedBy | null }
  | { readonly status: "done" }
  | NonceOutcome;

/** "conflict": it stood elsewhere. "forbidden": by a policy. Nothing was done then. */
export type MoveFate = "applied" | "conflict" | "forbidden";

export type AllocateFate =
  /** `recycled`: the nonce was a hole. */
  | { readonly fate: "created"; readonly nonce: number; readonly createdAt: Date; readonly recycled?: true }
  /** The request id exists: the row it names. `samePayload` tells an honest repeat from a reuse. */
  | { readonly fate: "duplicate"; readonly existing: ExistingTransaction; readonly samePayload: boolean }
  /** The lane has no cursor and no floor was given: nothing consumed. */
  | { readonly fate: "noCursor" }
  /** The lane is not reconciled since the database's history changed, or waits for an operator: nothing consumed. */
  | { readonly fate: "held" }
  /** A policy does not allow it: nothing consumed. */
  | ({ readonly fate: "forbidden" } & Forbidden)
  /** The database cannot hold this item; found by bisecting, never answered by the store itself. */
  | { readonly fate: "refused"; readonly detail: string };

export interface ExistingTransaction {
  readonly txId: string;
  readonly lane: Lane;
  readonly requestId: string | null;
  readonly owner: string | null;
  readonly nonce: number | null;
  readonly state: State;
  readonly fingerprint: Hex;
}
