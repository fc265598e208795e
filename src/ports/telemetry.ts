import type { AlertCode } from "../domain/alerts.ts";
import type { SubmitAnswer } from "../domain/answers.ts";
import type { Hash, Lane } from "../domain/lane.ts";
import type { ReservationState } from "../domain/reservations.ts";
import type { State, SubState, TransitionEvent } from "../domain/transitions.ts";
import type { DeathEvidence } from "./lease-store.ts";
import type { StuckAction } from "./stuck-hook.ts";

export type AlertSeverity = "WARNING" | "ERROR" | "CRITICAL";

/** Everything the application reports, typed. Logs, metrics and tests all listen to this one stream. */
export type TelemetryEvent =
  | { readonly type: "instance.registered"; readonly instanceId: string; readonly nodeId: string }
  | { readonly type: "instance.lost"; readonly instanceId: string }
  | {
      readonly type: "instance.declaredDead";
      readonly instanceId: string;
      readonly evidence: DeathEvidence;
    }
  /** The session lock of this process. "unseen": it is not on the server that others look at. "pooled": there is none. */
  | { readonly type: "instance.lock"; readonly state: "told" | "lost" | "unseen" | "pooled" }
  | {
      readonly type: "lease.acquire";
      readonly lane: Lane;
      readonly result: "acquired" | "kept" | "takenOver" | "notLeader";
      readonly token: number | null;
    }
  /** Several lanes at once: new ones, and ones that another instance had before. */
  | { readonly type: "lanes.taken"; readonly acquired: number; readonly takenOver: number }
  | { readonly type: "lease.released"; readonly lane: Lane; readonly token: number }
  /** A write that came too late: refused by the database, or stopped here by what this node knew before it could ask. */
  | {
      readonly type: "lease.fenced";
      readonly lane: Lane;
      readonly token: number;
      readonly write: string;
      readonly stoppedBy: "database" | "deadline";
    }
  | {
      readonly type: "lane.resumed";
      readonly lane: Lane;
      readonly token: number;
      readonly tracking: number;
      readonly allocated: number;
    }
  | { readonly type: "lane.stopped"; readonly lane: Lane; readonly reason: string }
  /** The head of the line was not mined in time, and others wait behind it. Once for each head. */
  | {
      readonly type: "lane.blocked";
      readonly lane: Lane;
      readonly txId: string;
      readonly nonce: number;
      readonly behind: number;
    }
  | { readonly type: "writer.flushed"; readonly items: number; readonly writes: number; readonly durationMs: number }
  /** Nothing was committed, and the same is tried again: a lock or a statement took too long, or a connection ended. */
  | { readonly type: "writer.busy"; readonly writes: number; readonly tries: number; readonly reason: string }
  | { readonly type: "writer.failed"; readonly items: number; readonly reason: string }
  | { readonly type: "create.answered"; readonly result: CreateResultLabel; readonly durationMs: number }
  | {
      readonly type: "forward";
      readonly lane: Lane;
      /** "hit": the first guess named the owner. "miss": it took another stop. "failed": no owner was found in time. */
      readonly result: "hit" | "miss" | "failed";
      readonly stops: number;
    }
  | ({ readonly type: "tx.transition" } & TransitionReport)
  | {
      readonly type: "submit.answered";
      readonly lane: Lane;
      readonly txId: string;
      readonly nonce: number;
      /** Null: a node signs it, and has not said which transaction that made. */
      readonly txHash: Hash | null;
      readonly answer: SubmitAnswer;
      readonly detail: string | null;
      readonly first: boolean;
      readonly sinceCreatedMs: number | null;
    }
  | {
      readonly type: "receipt.checked";
      readonly chainId: number;
      readonly result: "found" | "notFound" | "error";
      readonly count: number;
    }
  | { readonly type: "confirmations.newFork"; readonly chainId: number; readonly fromBlock: number }
  | { readonly type: "chain.head"; readonly chainId: number; readonly number: number; readonly hash: Hash }
  | { readonly type: "chain.reorg"; readonly chainId: number; readonly depth: number; readonly fromBlock: number }
  | { readonly type: "chain.gap"; readonly chainId: number; readonly reason: string }
  | { readonly type: "chain.unreachable"; readonly chainId: number; readonly reason: string }
  | { readonly type: "chain.reachable"; readonly chainId: number }
  | { readonly type: "nonce.allocated"; readonly lane: Lane; readonly first: number; readonly count: number }
  /** Holes that were closed: by the next transaction or reservation, or by those above moving down. */
  | { readonly type: "nonce.recycled"; readonly lane: Lane; readonly count: number }
  | {
      readonly type: "nonce.reserved";
      readonly lane: Lane;
      readonly reservationId: string;
      readonly nonce: number;
      readonly state: ReservationState;
    }
  /** A lane was compared with the chain. */
  | { readonly type: "lane.reconciled"; readonly lane: Lane; readonly result: ReconcileResult }
  | {
      readonly type: "gray.zone";
      readonly lane: Lane;
      readonly txId: string;
      readonly nonce: number;
      readonly result: GrayZoneResult;
    }
  | { readonly type: "signer.balance"; readonly lane: Lane; readonly balance: bigint }
  /** A lane that never gave a nonce begins where the chain counts to. */
  | { readonly type: "nonce.firstCount"; readonly lane: Lane; readonly chainCount: number }
  | {
      readonly type: "nonce.drift";
      readonly lane: Lane;
      readonly cursor: number;
      readonly chainCount: number;
      readonly proved: boolean;
    }
  | {
      readonly type: "rpc.request";
      readonly chainId: number;
      readonly endpoint: number;
      readonly method: string;
      readonly result: "ok" | "error" | "unreachable";
      /** So many calls of one request to the endpoint. */
      readonly calls: number;
      readonly durationMs: number;
    }
  /** An endpoint is used, or passed over, from now on; told when first known, and at each change. */
  | {
      readonly type: "rpc.endpoint";
      readonly chainId: number;
      readonly endpoint: number;
      readonly state: EndpointState;
    }
  | { readonly type: "store.historyChanged"; readonly detail: string }
  | { readonly type: "feed.epochBegun"; readonly epoch: number; readonly mayHaveLost: boolean }
  | {
      readonly type: "lane.recovered";
      readonly lane: Lane;
      readonly token: number;
      /** Before and after; the cursor only moves where the chain was ahead. */
      readonly from: number | null;
      readonly cursor: number;
      readonly suspendedBy: "OPERATOR" | "HISTORY" | null;
    }
  | {
      readonly type: "stuck.resolution";
      readonly lane: Lane;
      readonly txId: string;
      readonly action: StuckAction;
      readonly result: StuckResultLabel;
    }
  | {
      readonly type: "lane.suspended";
      readonly lane: Lane;
      readonly suspended: boolean;
      readonly actor: string;
      readonly reason: string;
    }
  | {
      readonly type: "alert";
      readonly severity: AlertSeverity;
      readonly code: AlertCode;
      readonly message: string;
      readonly lane?: Lane;
      readonly txId?: string;
    };

/**
 * "applied": done. "repeated": had been done before. "movedOn": the transaction changed after the decision. "refused": it cannot
 * be done. "failed": nothing was decided. "limited": nothing was asked, it was asked too often.
 */
export type StuckResultLabel = "applied" | "repeated" | "movedOn" | "refused" | "failed" | "limited";

/**
 * "agreed": nothing to do. "aligned": the chain was ahead, and the cursor follows. "drift": it is ahead, and not proved.
 * "distrusted": this is not, or not for sure, the chain that we know. "unavailable": it could not be asked.
 */
export type ReconcileResult = "agreed" | "aligned" | "drift" | "distrusted" | "unavailable";

/** What became of a payload that a node signed and whose hash was unknown. */
export type GrayZoneResult = "entered" | "adopted" | "foreign" | "sentAnew";

/** "failing": it does not answer. "behind": it does not keep up with another one. "foreign": it serves another chain. */
export type EndpointState = "up" | "failing" | "behind" | "foreign";

export type CreateResultLabel =
  | "created"
  | "duplicate"
  | "reused"
  | "invalid"
  | "rejected"
  | "queueFull"
  | "unavailable"
  | "notLeader"
  | "unknown";

export interface TransitionReport {
  readonly lane: Lane;
  readonly txId: string;
  readonly nonce: number | null;
  readonly event: TransitionEvent;
  readonly from: State | null;
  readonly state: State;
  readonly subState: SubState | null;
  readonly txHash: Hash | null;
  readonly nodeId: string;
  readonly token: number;
  /** Since creation; only where a final state is entered. */
  readonly ageMs?: number;
}

export interface Telemetry {
  emit(event: TelemetryEvent): void;
}
