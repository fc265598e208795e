import type { Hash, Lane } from "../domain/lane.ts";
import type { NonceHolders } from "../domain/nonce-spans.ts";
import type { Notice } from "../domain/notices.ts";
import type { Limits } from "../domain/principal.ts";
import type { ReservationState } from "../domain/reservations.ts";
import type { State, Status } from "../domain/transitions.ts";
import type { TroubledLane, TroubledTransaction } from "../domain/troubles/facts.ts";
import type { Trouble } from "../domain/troubles/rows.ts";

/** What the database knows of what needs a person; each list is cut at a limit, and `more` says how many are left out. */
export interface Troubles {
  /** By the database's clock. */
  readonly at: Date;
  readonly lanes: readonly TroubledLane[];
  readonly held: readonly TroubledTransaction[];
  readonly awaiting: readonly TroubledTransaction[];
  /** That nobody acknowledged, and that are not over. */
  readonly notices: readonly Notice[];
  readonly more: number;
}

/** By what is kept on the lanes' rows. */
export interface Totals {
  readonly at: Date;
  readonly lanes: number;
  readonly states: Readonly<Record<State, number>>;
}

/** Over the last minutes, from the newest rows alone. */
export interface Pulse {
  readonly createdPerMinute: number;
  readonly completedPerMinute: number;
  /** From create to outcome, of the newest completions. */
  readonly secondsToFinality: readonly number[];
}

/** The oldest of a chain that has a nonce and is not over. */
export interface OldestOpen {
  readonly lane: Lane;
  readonly txId: string;
  readonly nonce: number;
  readonly createdAt: Date;
}

export interface FoundTransaction extends Status {
  readonly lane: Lane;
  readonly txId: string;
  readonly requestId: string | null;
  readonly nonce: number | null;
}

export interface FoundReservation {
  readonly lane: Lane;
  readonly reservationId: string;
  readonly nonce: number;
  readonly state: ReservationState;
}

/** Each of these is looked up by an index of its own; absent: not looked for. Bounds are `from` included, `to` excluded. */
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

/** Nonces of a lane in one snapshot; those of none of the lists were never ours. */
export interface LaneNonces extends NonceHolders {
  /** Null: the lane is unknown, or unused. */
  readonly cursor: number | null;
  /** The lowest nonce of a transaction that is not over; null: there is none. */
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

export interface PastInstance {
  readonly nodeId: string;
  readonly instanceId: string;
  readonly version: string;
  readonly startedAt: Date;
  readonly heartbeatAt: Date;
  readonly state: "alive" | "draining" | "expired" | "gone";
}

export interface PastDatabase {
  readonly epoch: number;
  readonly systemIdentifier: string;
  readonly timeline: string;
  readonly mayHaveLost: boolean;
  readonly seenAt: Date;
}

export interface ClusterPast {
  readonly takeovers: readonly TakeoverRecord[];
  readonly nodes: readonly PastInstance[];
  readonly database: readonly PastDatabase[];
}

/** What a node alone knew, when it last wrote it. */
export interface NodeReport {
  readonly instanceId: string;
  readonly findings: readonly Trouble[];
}

/** Reads for people who look at everything at once. None may cost by the rows: kept counts, and indexes. */
export interface SightStore {
  troubles(limit: number): Promise<Troubles>;
  totals(limits: Limits): Promise<Totals>;
  pulse(): Promise<Pulse>;
  /**
   * Of each of these chains, by the oldest that are followed at all. "unknown": so many of those are over and only watched that the
   * look was ended.
   */
  oldestOpen(chainIds: readonly number[]): Promise<readonly (OldestOpen | "none" | "unknown")[]>;
  search(terms: SearchTerms): Promise<SearchHits>;
  /** Both ends included. */
  nonces(lane: Lane, from: number, to: number): Promise<LaneNonces>;
  past(limit: number): Promise<ClusterPast>;
  /** Replaces what an instance said before. Nothing is decided by it. */
  report(report: NodeReport): Promise<void>;
  /** Of the instances that are alive. */
  reports(): Promise<readonly NodeReport[]>;
  /** Of those that ended within the last quarter of an hour: whoever owns their lanes now takes first moments from them. */
  endedReports(): Promise<readonly NodeReport[]>;
}
