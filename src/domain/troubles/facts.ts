/** Facts that rows are drawn from: of the database, and of the node that acts. */

import type { Kill } from "../cluster/kills.ts";
import type { Lane } from "../lane.ts";
import type { LedgerTransaction, SuspendedBy } from "../ledger/index.ts";
import type { Hole } from "../nonces/holes.ts";
import type { LaneTransaction } from "../transaction/transaction.ts";
import type { ReportedFacts } from "./rows.ts";

interface Dated {
  /** When it first became STUCK; else when it last changed. */
  readonly since: Date;
}

/** A lane that nothing moves on, or not as it should. */
export interface TroubledLane {
  readonly lane: Lane;
  readonly suspendedBy: SuspendedBy | null;
  /** The last one that people made about it; null: none is kept. */
  readonly decision: { readonly actor: string; readonly reason: string; readonly at: Date } | null;
  /** Not final, with a nonce. */
  readonly open: number;
  /** The lowest that is not over; null: nothing is open. */
  readonly head: (Pick<LaneTransaction, "txId" | "nonce" | "state"> & Dated) | null;
  /** The lowest nonce that nothing holds. */
  readonly hole: Pick<Hole, "nonce" | "detail" | "since"> | null;
}

export interface TroubledTransaction extends Pick<LedgerTransaction, "txId" | "nonce">, Dated {
  readonly lane: Lane;
  /** On its lane, not final, with a nonce: itself among them if it has one. */
  readonly open: number;
  readonly facts?: ReportedFacts;
}

/** An order to stop that is in force. */
export interface KillInForce extends Kill {
  readonly at: Date;
}

/** An instance whose heartbeat has run out, and whose lanes nobody has taken. */
export interface SilentNode {
  readonly nodeId: string;
  readonly instanceId: string;
  readonly lanes: number;
  readonly heartbeatAt: Date;
  /** Others know that it is gone, and none of them takes its lanes. */
  readonly dead: boolean;
}
