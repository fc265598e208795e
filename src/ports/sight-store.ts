import type { Notice } from "../domain/cluster/notices.ts";
import type { Limits } from "../domain/keys/principal.ts";
import type { Hash, Lane } from "../domain/lane.ts";
import type { NonceHolders } from "../domain/nonces/nonce-spans.ts";
import type { Reservation } from "../domain/transaction/reservations.ts";
import type { State } from "../domain/transaction/transitions.ts";
import type { TroubledLane, TroubledTransaction, UnownedLane } from "../domain/troubles/find.ts";
import type { Trouble } from "../domain/troubles/rows.ts";
import type { TrackedRecord } from "./lane-store.ts";
import type { InstanceRecord, Registered } from "./lease-store.ts";
import type { TransactionRecord } from "./query-store.ts";

/**
 * All problems in the database that need a person's attention. Each list has a limit; `more` is the number left out.
 */
export interface Troubles {
  /** Time of the read, by the database's clock. */
  readonly at: Date;
  readonly lanes: readonly TroubledLane[];
  readonly held: readonly TroubledTransaction[];
  readonly awaiting: readonly TroubledTransaction[];
  /** Notices that are not acknowledged and whose event is not over. */
  readonly notices: readonly Notice[];
  readonly more: number;
}

/**
 * Numbers of transactions by state, from counts that are stored in the lane rows; CREATED is counted in the intake
 * table.
 */
export interface Totals {
  readonly at: Date;
  readonly lanes: number;
  readonly states: Readonly<Record<State, number>>;
}

/** Creates and completions per minute, computed from the newest rows only. */
export interface Pulse {
  readonly createdPerMinute: number;
  readonly completedPerMinute: number;
  /** Seconds from create to outcome, for the newest completions. */
  readonly secondsToFinality: readonly number[];
}

/** The oldest transaction of a chain that has a nonce and no outcome. */
export interface OldestOpen extends Pick<TrackedRecord, "txId" | "nonce" | "createdAt"> {
  readonly lane: Lane;
}

export type FoundTransaction = Pick<TransactionRecord, "lane" | "txId" | "requestId" | "nonce" | "state" | "subState">;

export type FoundReservation = Pick<Reservation, "lane" | "reservationId" | "nonce" | "state">;

/**
 * Search terms. Each field is looked up by its own index; an absent field is not searched. Ranges include `from` and
 * exclude `to`.
 */
export interface SearchTerms {
  readonly txIds?: Between;
  readonly reservationIds?: Between;
  readonly requestIds?: Between;
  readonly signers?: Between;
  readonly txHash?: Hash;
  readonly nonce?: { readonly nonce: number; readonly signers: Between };
  readonly limit: number;
}

export interface Between {
  readonly from: string;
  readonly to: string;
}

export interface SearchHits {
  readonly transactions: readonly FoundTransaction[];
  readonly reservations: readonly FoundReservation[];
  readonly lanes: readonly Lane[];
}

/**
 * Nonces of a lane, read in one snapshot. A nonce that is in none of the lists was used by another program or not at
 * all; below `departedBelow`, its transaction may have been deleted by retention.
 */
export interface LaneNonces extends NonceHolders {
  /** The lane's next nonce; null if the lane is unknown or unused. */
  readonly cursor: number | null;
  /** Lowest nonce that has a transaction without an outcome, a gap or an open reservation; null if there is none. */
  readonly firstOpen: number | null;
}

export interface TakeoverRecord {
  readonly lane: Lane;
  readonly from: string | null;
  readonly to: string;
  readonly token: number;
  readonly why: string | null;
  readonly at: Date;
}

export interface PastInstance
  extends Pick<InstanceRecord, "nodeId" | "instanceId" | "version" | "startedAt" | "heartbeatAt"> {
  readonly state: "alive" | "draining" | "expired" | "gone";
}

export interface PastDatabase extends Pick<Registered, "epoch" | "mayHaveLost"> {
  readonly systemIdentifier: string;
  readonly timeline: string;
  readonly seenAt: Date;
}

export interface ClusterPast {
  readonly takeovers: readonly TakeoverRecord[];
  readonly nodes: readonly PastInstance[];
  readonly database: readonly PastDatabase[];
}

/** Last report of a node about facts that no other node has. */
export interface NodeReport {
  readonly instanceId: string;
  readonly findings: readonly Trouble[];
}

/** Reads for overview pages. Their cost must not grow with the number of rows: they use stored counts and indexes. */
export interface SightStore {
  troubles(limit: number): Promise<Troubles>;
  /** At most `limit` lanes with open transactions or intents and without a live owner, by signer and chain. */
  unownedLanes(limit: number): Promise<readonly UnownedLane[]>;
  totals(limits: Limits): Promise<Totals>;
  pulse(): Promise<Pulse>;
  /**
   * For each of these chains, the oldest transaction without an outcome. "unknown": the search was stopped, because too
   * many transactions before it are already settled and only watched for reorgs.
   */
  oldestOpen(chainIds: readonly number[]): Promise<readonly (OldestOpen | "none" | "unknown")[]>;
  search(terms: SearchTerms): Promise<SearchHits>;
  /** Nonces of a lane from `from` to `to`, both included. */
  nonces(lane: Lane, from: number, to: number): Promise<LaneNonces>;
  past(limit: number): Promise<ClusterPast>;
  /** Replaces the previous report of an instance. No decision depends on reports. */
  report(report: NodeReport): Promise<void>;
  /** Reports of live instances. */
  reports(): Promise<readonly NodeReport[]>;
  /**
   * Reports of instances that ended within the last quarter of an hour. From them, the next owner of a lane learns
   * since when its problems have lasted.
   */
  endedReports(): Promise<readonly NodeReport[]>;
}
