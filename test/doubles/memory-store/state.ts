import type { Hole } from "../../../src/domain/holes.ts";
import type { Hash, Hex, Lane, LaneKey } from "../../../src/domain/lane.ts";
import type { Reservation } from "../../../src/domain/reservations.ts";
import type { Intent, Payload, Receipt, SignedAttempt } from "../../../src/domain/transaction.ts";
import type { State, SubState, TransitionEvent } from "../../../src/domain/transitions.ts";
import type { QueuedChange, SuspendedBy } from "../../../src/ports/lane-store.ts";
import type { InstanceRegistration } from "../../../src/ports/lease-store.ts";
import type { CompletionRecord, HistoryRecord, LaneDecisionRecord } from "../../../src/ports/query-store.ts";

export interface InstanceRow extends Omit<InstanceRegistration, "leaseDurationMs" | "chains" | "standsBack"> {
  startedAt: Date;
  heartbeatAt: Date;
  expiresAt: Date;
  counter: number;
  dead: boolean;
  chains: readonly number[];
  draining: boolean;
  standsBack: boolean;
  /** The key it told of. */
  sessionLock: number | null;
}

export interface LaneRow {
  readonly lane: Lane;
  /** Newest first. */
  decisions: readonly LaneDecisionRecord[];
  owner: string | null;
  token: number;
  acquiredAt: Date | null;
  cursor: number | null;
  suspendedBy: SuspendedBy | null;
  reconciledEpoch: number;
  confirmed: number;
  failed: number;
}

export interface StoredAttempt extends SignedAttempt {
  readonly createdAt: Date;
  readonly firstSentAt: Date | null;
}

export interface TransactionRow {
  readonly txId: string;
  readonly lane: Lane;
  readonly requestId: string | null;
  readonly ownsRequest: boolean;
  nonce: number | null;
  readonly payload: Payload;
  readonly gas: bigint | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly fingerprint: Hex;
  readonly createdAt: Date;
  state: State;
  subState: SubState | null;
  live: boolean;
  lastEvent: TransitionEvent;
  attempts: readonly StoredAttempt[];
  receipt: Receipt | null;
  history: readonly HistoryRecord[];
  /** What is signed instead of the payload. */
  change?: QueuedChange;
  claim: { readonly token: number; readonly ordinal: number } | null;
  acceptedOrdinal: number | null;
  submitAttempts: number;
  lastSubmittedAt: Date | null;
  lastError: string | null;
  updatedAt: Date;
  confirmedAt: Date | null;
}

export interface IntakeEntry {
  readonly intakeId: number;
  readonly intent: Intent;
  readonly createdAt: Date;
  aliasOf: string | null;
}

/** Everything a database holds. One object, shared by all the stores that are connected to it. */
export interface DatabaseState {
  readonly instances: Map<string, InstanceRow>;
  /** Session locks that are held, by key. */
  readonly locks: Set<number>;
  readonly lanes: Map<LaneKey, LaneRow>;
  readonly transactions: Map<string, TransactionRow>;
  /** Live transactions by lane, so that a long simulation does not walk what is over. */
  readonly live: Map<LaneKey, Map<string, TransactionRow>>;
  readonly requests: Map<string, TransactionRow>;
  readonly nonces: Map<string, TransactionRow>;
  readonly hashes: Map<string, TransactionRow>;
  /** By lane and nonce. */
  readonly holes: Map<string, { readonly lane: Lane; readonly hole: Hole }>;
  readonly reservations: Map<string, Reservation>;
  readonly intake: Map<number, IntakeEntry>;
  readonly confirmations: Map<number, Map<number, Hash>>;
  readonly geneses: Map<number, Hash>;
  /** Where lanes stood when the feed's epoch began. */
  readonly epochFloors: Map<LaneKey, number>;
  readonly completions: CompletionRecord[];
  feed: { epoch: number; lastSeq: number; truncatedThrough: number; epochStartsAfter: number };
  lastIntakeId: number;
  /** Which history this is; a restore or a failover gives another. */
  history: number;
  /** Whether that one is known to have everything that the one before had. */
  mayHaveLost: boolean;
  /** The history that the feed's epoch belongs to, and whether it began because commits may have been lost. */
  epochHistory: number;
  epochMayHaveLost: boolean;
}

export function emptyState(): DatabaseState {
  return {
    instances: new Map(),
    locks: new Set(),
    lanes: new Map(),
    transactions: new Map(),
    live: new Map(),
    requests: new Map(),
    nonces: new Map(),
    hashes: new Map(),
    holes: new Map(),
    reservations: new Map(),
    intake: new Map(),
    confirmations: new Map(),
    geneses: new Map(),
    epochFloors: new Map(),
    completions: [],
    feed: { epoch: 1, lastSeq: 0, truncatedThrough: 0, epochStartsAfter: 0 },
    lastIntakeId: 0,
    history: 1,
    mayHaveLost: false,
    epochHistory: 1,
    epochMayHaveLost: false,
  };
}

export function requestKey(lane: Lane, requestId: string): string {
  return `${lane.chainId}:${lane.signer}:${requestId}`;
}

export function nonceKey(lane: Lane, nonce: number): string {
  return `${lane.chainId}:${lane.signer}:${nonce}`;
}

export function hashKey(chainId: number, hash: Hash): string {
  return `${chainId}:${hash}`;
}

export function sameLane(a: Lane, b: Lane): boolean {
  return a.chainId === b.chainId && a.signer === b.signer;
}

export function isAlive(instance: InstanceRow | undefined, now: Date): boolean {
  return instance !== undefined && !instance.dead && instance.expiresAt > now;
}

/** Waiting in call order; aliases are names, not work. */
export function waitingIntake(state: DatabaseState): readonly IntakeEntry[] {
  return [...state.intake.values()].filter((entry) => entry.aliasOf === null);
}
