/** Facts that rows are drawn from: of the database, and of the node that acts. */

import type { Address, Lane } from "../lane.ts";
import type { SuspendedBy } from "../ledger/index.ts";
import type { Hole } from "../nonces/holes.ts";
import type { State } from "../transaction/transitions.ts";
import type { ReportedFacts } from "./rows.ts";

/** A lane that nothing moves on, or not as it should. */
export interface TroubledLane {
  readonly lane: Lane;
  readonly suspendedBy: SuspendedBy | null;
  /** The last one that people made about it; null: none is kept. */
  readonly decision: { readonly actor: string; readonly reason: string; readonly at: Date } | null;
  /** Not final, with a nonce. */
  readonly open: number;
  /** The lowest that is not over; null: nothing is open. */
  readonly head: {
    readonly txId: string;
    readonly nonce: number;
    readonly state: State;
    /** When it first became STUCK; else when it last changed. */
    readonly since: Date;
  } | null;
  /** The lowest nonce that nothing holds. */
  readonly hole: Pick<Hole, "nonce" | "detail" | "since"> | null;
}

export interface TroubledTransaction {
  readonly lane: Lane;
  readonly txId: string;
  readonly nonce: number | null;
  readonly since: Date;
  /** On its lane, not final, with a nonce: itself among them if it has one. */
  readonly open: number;
  readonly facts?: ReportedFacts;
}

/** An order to stop that is in force. */
export interface KillInForce {
  readonly killId: string;
  readonly signer: Address | null;
  readonly actor: string;
  readonly reason: string;
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
