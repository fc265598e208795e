import type { AlertSeverity, AlertSubject } from "../domain/alerts.ts";
import type { SubmitAnswer } from "../domain/answers.ts";
import type { Hash, Lane } from "../domain/lane.ts";
import type { SuspendedBy } from "../domain/ledger/index.ts";
import type { ReservationState } from "../domain/reservations.ts";
import type { State, SubState, TransitionEvent } from "../domain/transitions.ts";
import type { EndpointState } from "./chain.ts";
import type { Acquisition, DeathEvidence } from "./lease-store.ts";
import type { StuckAction } from "./stuck-hook.ts";

export type { AlertSeverity } from "../domain/alerts.ts";
export type { EndpointState } from "./chain.ts";

type OfLane = { lane: Lane };
type OfTerm = OfLane & { token: number };
type OfTransaction = OfLane & { txId: string; nonce: number };
type OfChain = { chainId: number };
type OfEndpoint = OfChain & { endpoint: number };

/** Everything the application reports, by its name. */
interface Events {
  "instance.registered": { instanceId: string; nodeId: string };
  "instance.lost": { instanceId: string };
  "instance.declaredDead": { instanceId: string; evidence: DeathEvidence };
  /** The session lock of this process. "unseen": it is not on the server that others look at. "pooled": there is none. */
  "instance.lock": { state: "told" | "lost" | "unseen" | "pooled" };
  /** An endpoint said so, on a database that has served no chain yet: from here on no other is taken from its word. */
  "chain.adopted": OfChain;
  "lease.acquire": OfLane & { result: Acquisition["result"]; token: number | null };
  /** Several lanes at once: new ones, and ones that another instance had before. */
  "lanes.taken": { acquired: number; takenOver: number };
  "lease.released": OfTerm;
  /** A write that came too late: refused by the database, or stopped here by what this node knew before it could ask. */
  "lease.fenced": OfTerm & { write: string; stoppedBy: "database" | "deadline" };
  "lane.resumed": OfTerm & { tracking: number; allocated: number };
  "lane.stopped": OfLane & { reason: string };
  /** The head of the line was not mined in time, and others wait behind it. Once for each head. */
  "lane.blocked": OfTransaction & { behind: number };
  "writer.flushed": { items: number; writes: number; durationMs: number };
  /** Nothing was committed, and the same is tried again: a lock or a statement took too long, or a connection ended. */
  "writer.busy": { writes: number; tries: number; reason: string };
  "writer.failed": { items: number; reason: string };
  "create.answered": { result: CreateResultLabel; durationMs: number };
  /** "hit": the first guess named the owner. "miss": it took another stop. "failed": no owner was found in time. */
  forward: OfLane & { result: "hit" | "miss" | "failed"; stops: number };
  /** A request from another node was not let in, or one to another node not sent. */
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
    /** Since creation; only where a final state is entered. */
    ageMs?: number;
    /** The trace it belongs to; only where its nonce is given. */
    traceparent?: string;
  };
  "submit.answered": OfTransaction & {
    /** Null: a node signs it, and has not said which transaction that made. */
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
  /** Holes that were closed: by the next transaction or reservation, or by those above moving down. */
  "nonce.recycled": OfLane & { count: number };
  "nonce.reserved": OfTerm & { reservationId: string; nonce: number; state: ReservationState };
  /** A lane was compared with the chain. */
  "lane.reconciled": OfLane & { result: ReconcileResult };
  "gray.zone": OfTransaction & { result: GrayZoneResult };
  "signer.balance": OfLane & { balance: bigint };
  /** A lane that never gave a nonce begins where the chain counts to. */
  "nonce.firstCount": OfLane & { chainCount: number };
  "nonce.drift": OfLane & { cursor: number; chainCount: number; proved: boolean };
  /** `calls`: so many of one request to the endpoint. */
  "rpc.request": OfEndpoint & {
    method: string;
    result: "ok" | "error" | "unreachable";
    calls: number;
    durationMs: number;
  };
  /** An endpoint is used, or passed over, from now on; told when first known, and at each change. */
  "rpc.endpoint": OfEndpoint & { state: EndpointState };
  "store.historyChanged": { detail: string };
  "feed.epochBegun": { epoch: number; mayHaveLost: boolean };
  /** What has left by retention in one look at everything; `oldestAgeMs` of the oldest completion that is kept. */
  "retention.round": {
    keptMs: number;
    transactions: number;
    completions: number;
    requestIds: number;
    oldestAgeMs: number | null;
  };
  /** A node runs that would do late repeats again: until it is gone, nothing leaves. */
  "retention.waits": { olderNode: string; version: string };
  /** `from` and `cursor`: before and after; the cursor only moves where the chain was ahead. */
  "lane.recovered": OfTerm & { from: number | null; cursor: number; suspendedBy: SuspendedBy | null };
  /** `reason`: the words of who decided, or why nothing was. */
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
  /** What was said of the same thing under the same code is over. Only alerts about what lasts are followed by one. */
  "alert.resolved": AlertSubject & { message: string };
}

/** Logs, metrics and tests all listen to this one stream. */
export type TelemetryEvent = { [K in keyof Events]: Readonly<{ type: K } & Events[K]> }[keyof Events];

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

/**
 * "unreadable": not signed in our form. "receiver": for another process. "sender": of an instance that is dead, unknown or
 * without a key. "secret": its key is not vouched for by the nodes' common secret. "signature": not by that key. "stale":
 * held back. "replayed": it came before. "body": not the one that was signed. "url": advertised where no node may be.
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
