import type { SubmitAnswer } from "../domain/chain/answers.ts";
import type { Hash, Lane } from "../domain/lane.ts";
import type { SuspendedBy } from "../domain/ledger/index.ts";
import type { ReservationState } from "../domain/transaction/reservations.ts";
import type { State, SubState, TransitionEvent } from "../domain/transaction/transitions.ts";
import type { AlertSeverity, AlertSubject } from "../domain/troubles/table.ts";
import type { DeliveryResult } from "../domain/webhooks/receiver-answers.ts";
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
type OfSubscriber = { subscriber: string };

/** Every event that the application reports, by name. */
interface Events {
  "instance.registered": { instanceId: string; nodeId: string };
  "instance.lost": { instanceId: string };
  "instance.declaredDead": { instanceId: string; evidence: DeathEvidence };
  /**
   * State of this process's session lock. "unseen": the lock is not visible on the server that other nodes read.
   * "pooled": no lock is possible behind a transaction pooler.
   */
  "instance.lock": { state: "told" | "lost" | "unseen" | "pooled" };
  /**
   * The database had served no chain yet, and an endpoint reported this chain id. From now on another id is refused.
   */
  "chain.adopted": OfChain;
  "lease.acquire": OfLane & { result: Acquisition["result"]; token: number | null };
  /** Several lanes were acquired at once: new ones (`acquired`), and ones that had an owner before (`takenOver`). */
  "lanes.taken": { acquired: number; takenOver: number };
  "lease.released": OfTerm;
  /**
   * A write after the end of the node's ownership of the lane: refused by the database, or not sent, because the node's
   * own deadline had passed or it already knew of the end.
   */
  "lease.fenced": OfTerm & { write: string; stoppedBy: "database" | "deadline" };
  "lane.resumed": OfTerm & { tracking: number; allocated: number };
  "lane.stopped": OfLane & { reason: string };
  /**
   * A lane's lowest open transaction was not mined in time, and other transactions wait behind it. Reported once for
   * each such transaction.
   */
  "lane.blocked": OfTransaction & { behind: number };
  "writer.flushed": { items: number; writes: number; durationMs: number };
  /**
   * Nothing was committed, and the batch is retried: a lock or a statement exceeded its timeout, or a connection ended.
   */
  "writer.busy": { writes: number; tries: number; reason: string };
  "writer.failed": { items: number; reason: string };
  "create.answered": { result: CreateResultLabel; durationMs: number };
  /**
   * Creates, or another request for a lane's owner, were forwarded. "hit": the first node tried was the owner. "miss":
   * another node had to be tried. "failed": no owner was found in time.
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
    /** Age since creation; set only when a final state is entered. */
    ageMs?: number;
    /** Trace context of the transaction; set only at allocation. */
    traceparent?: string;
  };
  "submit.answered": OfTransaction & {
    /** Hash of the attempt; null if an RPC node signs it and has not returned the hash. */
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
  /** Number of nonce gaps that were closed: by the next transaction or reservation, or by moving transactions down. */
  "nonce.recycled": OfLane & { count: number };
  "nonce.reserved": OfTerm & { reservationId: string; nonce: number; state: ReservationState };
  /** Result of a request for a signature of a message; `rule` is null if none was found, or none was asked. */
  "message.answered": OfTerm & {
    signatureId: string;
    requestId: string;
    owner: string | null;
    kind: "personal" | "typedData";
    rule: string | null;
    result: "signed" | "repeated" | "awaiting" | "refused" | "stopped";
  };
  /** Result of comparing a lane with the chain. */
  "lane.reconciled": OfLane & { result: ReconcileResult };
  "gray.zone": OfTransaction & { result: GrayZoneResult };
  "signer.balance": OfLane & { balance: bigint };
  /** The first nonce of a new lane is taken from the chain's transaction count of its signer. */
  "nonce.firstCount": OfLane & { chainCount: number };
  "nonce.drift": OfLane & { cursor: number; chainCount: number; proved: boolean };
  /** A request to an endpoint. `calls`: number of JSON-RPC calls in it. */
  "rpc.request": OfEndpoint & {
    method: string;
    result: "ok" | "error" | "unreachable";
    calls: number;
    durationMs: number;
  };
  /** From now on an endpoint is used, or is skipped. Reported when its state is first known, and at each change. */
  "rpc.endpoint": OfEndpoint & { state: EndpointState };
  "store.historyChanged": { detail: string };
  "feed.epochBegun": { epoch: number; mayHaveLost: boolean };
  /** Rows deleted by one pass of retention; `oldestAgeMs`: age of the oldest remaining completion. */
  "retention.round": {
    keptMs: number;
    transactions: number;
    completions: number;
    requestIds: number;
    oldestAgeMs: number | null;
  };
  /**
   * A lane was compared with the chain after the database's history changed. `from` and `cursor`: its next nonce before
   * and after; it changes only if the chain was ahead.
   */
  "lane.recovered": OfTerm & { from: number | null; cursor: number; suspendedBy: SuspendedBy | null };
  /**
   * Result of a decision about a stuck transaction. `reason`: the reason given by the hook or operator that decided, or
   * why nothing was decided.
   */
  "stuck.resolution": OfTerm & {
    txId: string;
    nonce: number | null;
    action: StuckAction;
    result: StuckResultLabel;
    reason: string;
  };
  "lane.suspended": OfTerm & { suspended: boolean; actor: string; reason: string };
  /** An operator set the lane's next nonce to `cursor`. */
  "lane.realigned": OfTerm & { cursor: number; actor: string; reason: string };
  /** This node delivers for a subscriber from now on. `token`: its term. */
  "webhook.taken": OfSubscriber & { token: number };
  /** The progress of a subscriber was not stored, because its term is over. */
  "webhook.fenced": OfSubscriber & { token: number };
  /** A receiver answered one delivery; `status` is null if it did not. */
  "webhook.answered": OfSubscriber & {
    eventId: string;
    result: DeliveryResult;
    status: number | null;
    durationMs: number;
  };
  alert: AlertSubject & { severity: AlertSeverity; message: string };
  /** A lasting alert continues, with an updated message. */
  "alert.renewed": AlertSubject & { message: string };
  /**
   * The condition that an earlier alert reported is over. That alert had the same code and concerned the same lane,
   * transaction, chain or endpoint. Only alerts about lasting conditions are resolved.
   */
  "alert.resolved": AlertSubject & { message: string };
}

/** An event of the telemetry stream, which logs, metrics and tests read. */
export type TelemetryEvent = { [K in keyof Events]: Readonly<{ type: K } & Events[K]> }[keyof Events];

/**
 * Result of a decision about a stuck transaction. "applied": done. "repeated": done before. "movedOn": the transaction
 * changed after the decision. "refused": it cannot be done. "failed": nothing was decided. "limited": the hook was not
 * called, because it was called too often.
 */
export type StuckResultLabel = "applied" | "repeated" | "movedOn" | "refused" | "failed" | "limited";

/**
 * Result of comparing a lane with the chain. "agreed": nothing to do. "aligned": the chain was ahead, and the lane's
 * next nonce was raised. "drift": an endpoint reports that the chain is ahead, but this is not proven. "distrusted":
 * the endpoints may serve another chain. "unavailable": no endpoint responded.
 */
export type ReconcileResult = "agreed" | "aligned" | "drift" | "distrusted" | "unavailable";

/**
 * Step of the search for a transaction that an RPC node may have signed and whose hash is unknown. "entered": the
 * search begins. "adopted": our transaction was found. "foreign": another transaction was mined with its nonce.
 * "sentAnew": nothing was found in time, and it is sent again.
 */
export type GrayZoneResult = "entered" | "adopted" | "foreign" | "sentAnew";

/**
 * Reason why a request of another node was refused, or a request to another node was not sent ("secret" and "url"
 * only). "unreadable": not signed in our format. "receiver": meant for another process. "sender": the sending instance
 * is dead, unknown or without a key. "secret": the shared secret does not prove the other node's key. "signature": not
 * made by that key. "stale": received too late. "replayed": received before. "body": not the body that was signed.
 * "url": the other node's URL does not match the configured pattern.
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
