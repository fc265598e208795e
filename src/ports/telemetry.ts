import type { SubmitAnswer } from "../domain/chain/answers.ts";
import type { Hash, Lane } from "../domain/lane.ts";
import type { SuspendedBy } from "../domain/ledger/index.ts";
import type { ReservationState } from "../domain/transaction/reservations.ts";
import type { State, SubState, TransitionEvent } from "../domain/transaction/transitions.ts";
import type { AlertSeverity, AlertSubject } from "../domain/troubles/table.ts";
import type { EndpointState } from "./chain.ts";
import type { Acquisition, DeathEvidence } from "./lease-store.ts";
import type { StuckAction } from "./stuck-hook.ts";

export type { AlertSeverity } from "../domain/troubles/table.ts";
export type { EndpointState } from "./chain.ts";

type OfLane = { lane: Lane };
type OfTerm = OfLane & { token: number };
type OfTransaction = OfLane & { txId: string; nonce: number };
type OfChain = { chainId: number };
type OfEndpoint = OfChain & { endpoint: number };

/** Every event that the application reports, by name. */
interface Events {
  "instance.registered": { instanceId: string; nodeId: string };
  "instance.lost": { instanceId: string };
  "instance.declaredDead": { instanceId: string; evidence: DeathEvidence };
  /**
   * State of this process's session lock. "unseen": it is not on the server that others read. "pooled": there is none
   * behind a pooler.
   */
  "instance.lock": { state: "told" | "lost" | "unseen" | "pooled" };
  /**
   * An endpoint reported this chain id to a database that had served no chain yet. From now on another id is refused.
   */
  "chain.adopted": OfChain;
  "lease.acquire": OfLane & { result: Acquisition["result"]; token: number | null };
  /** Several lanes at once: new ones, and ones taken over from another instance. */
  "lanes.taken": { acquired: number; takenOver: number };
  "lease.released": OfTerm;
  /** A write of an ended term: refused by the database, or stopped by this node before it was sent. */
  "lease.fenced": OfTerm & { write: string; stoppedBy: "database" | "deadline" };
  "lane.resumed": OfTerm & { tracking: number; allocated: number };
  "lane.stopped": OfLane & { reason: string };
  /** The head of a lane was not mined in time, and others wait behind it. Once for each head. */
  "lane.blocked": OfTransaction & { behind: number };
  "writer.flushed": { items: number; writes: number; durationMs: number };
  /** Nothing was committed, and the batch is retried: a lock or a statement took too long, or a connection ended. */
  "writer.busy": { writes: number; tries: number; reason: string };
  "writer.failed": { items: number; reason: string };
  "create.answered": { result: CreateResultLabel; durationMs: number };
  /**
   * "hit": the first node asked was the owner. "miss": another had to be asked. "failed": no owner was found in time.
   */
  forward: OfLane & { result: "hit" | "miss" | "failed"; stops: number };
  /** A request from another node was refused, or one to another node was not sent. */
  "peer.refused": { reason: PeerRefusal };
  "tx.transition": OfTerm & {
    txId: string;
    nonce: number | null;
    event: TransitionEvent;
    from: State | null;
    state: State;
    subState: SubState | null;
    txHash: Hash | null;
    nodeId: string;
    /** Age since creation; only when a final state is entered. */
    ageMs?: number;
    /** The transaction's trace; only at allocation. */
    traceparent?: string;
  };
  "submit.answered": OfTransaction & {
    /** Null if a node signs it and has not returned the hash. */
    txHash: Hash | null;
    answer: SubmitAnswer;
    detail: string | null;
    first: boolean;
    sinceCreatedMs: number | null;
  };
  "receipt.checked": OfChain & { result: "found" | "notFound" | "error"; count: number };
  "confirmations.newFork": OfChain & { fromBlock: number };
  "chain.head": OfChain & { number: number; hash: Hash };
  "chain.reorg": OfChain & { depth: number; fromBlock: number };
  "chain.gap": OfChain & { reason: string };
  "chain.unreachable": OfChain & { reason: string };
  "chain.reachable": OfChain;
  "nonce.allocated": OfLane & { first: number; count: number };
  /** Holes that were closed by the next transaction or reservation, or by moving transactions down. */
  "nonce.recycled": OfLane & { count: number };
  "nonce.reserved": OfTerm & { reservationId: string; nonce: number; state: ReservationState };
  /** Result of comparing a lane with the chain. */
  "lane.reconciled": OfLane & { result: ReconcileResult };
  "gray.zone": OfTransaction & { result: GrayZoneResult };
  "signer.balance": OfLane & { balance: bigint };
  /** A new lane starts at the chain's transaction count. */
  "nonce.firstCount": OfLane & { chainCount: number };
  "nonce.drift": OfLane & { cursor: number; chainCount: number; proved: boolean };
  /** `calls`: number of calls in one request to the endpoint. */
  "rpc.request": OfEndpoint & {
    method: string;
    result: "ok" | "error" | "unreachable";
    calls: number;
    durationMs: number;
  };
  /** An endpoint is used or skipped from now on; reported when first known, and at each change. */
  "rpc.endpoint": OfEndpoint & { state: EndpointState };
  "store.historyChanged": { detail: string };
  "feed.epochBegun": { epoch: number; mayHaveLost: boolean };
  /** Rows deleted by one pass of retention; `oldestAgeMs`: age of the oldest completion that is kept. */
  "retention.round": {
    keptMs: number;
    transactions: number;
    completions: number;
    requestIds: number;
    oldestAgeMs: number | null;
  };
  /** A running node would execute late repeats again: until it is gone, nothing is deleted. */
  /** `from` and `cursor`: before and after; the cursor moves only if the chain was ahead. */
  "lane.recovered": OfTerm & { from: number | null; cursor: number; suspendedBy: SuspendedBy | null };
  /** `reason`: from the hook or operator that decided, or why nothing was decided. */
  "stuck.resolution": OfTerm & {
    txId: string;
    nonce: number | null;
    action: StuckAction;
    result: StuckResultLabel;
    reason: string;
  };
  "lane.suspended": OfTerm & { suspended: boolean; actor: string; reason: string };
  /** An operator set the cursor to `cursor`. */
  "lane.realigned": OfTerm & { cursor: number; actor: string; reason: string };
  alert: AlertSubject & { severity: AlertSeverity; message: string };
  /** A lasting alert goes on, with new figures. */
  "alert.renewed": AlertSubject & { message: string };
  /** The condition of an earlier alert with the same code and subject is over. Only lasting conditions have one. */
  "alert.resolved": AlertSubject & { message: string };
}

/** Logs, metrics and tests read this one stream. */
export type TelemetryEvent = { [K in keyof Events]: Readonly<{ type: K } & Events[K]> }[keyof Events];

/**
 * "applied": done. "repeated": done before. "movedOn": the transaction changed after the decision. "refused": it cannot
 * be done. "failed": nothing was decided. "limited": not asked, because it was asked too often.
 */
export type StuckResultLabel = "applied" | "repeated" | "movedOn" | "refused" | "failed" | "limited";

/**
 * "agreed": nothing to do. "aligned": the chain was ahead, and the cursor follows. "drift": it is ahead, and not
 * proved. "distrusted": it is not certain that this is our chain. "unavailable": it could not be asked.
 */
export type ReconcileResult = "agreed" | "aligned" | "drift" | "distrusted" | "unavailable";

/** Outcome of a payload that a node signed under an unknown hash. */
export type GrayZoneResult = "entered" | "adopted" | "foreign" | "sentAnew";

/**
 * "unreadable": not signed in our format. "receiver": for another process. "sender": the instance is dead, unknown or
 * without a key. "secret": the shared secret does not prove its key. "signature": not made by that key. "stale": too
 * late. "replayed": received before. "body": not the signed one. "url": not allowed by the pattern.
 */
export type PeerRefusal =
  | "unreadable"
  | "receiver"
  | "sender"
  | "secret"
  | "signature"
  | "stale"
  | "replayed"
  | "body"
  | "url";

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

export interface Telemetry {
  emit(event: TelemetryEvent): void;
}
