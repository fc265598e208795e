/** What a commit will write, worked out from what was read behind the locks. The planners only fill this in. */
import type { Confirmation } from "../../../domain/confirmations.ts";
import { type Fence, type Hash, type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { PreparedIntent, Receipt, SignedAttempt } from "../../../domain/transaction.ts";
import type { State } from "../../../domain/transitions.ts";
import type {
  ExistingTransaction,
  IntakeFate,
  LaneDecision,
  NewCompletion,
  QueuedChange,
  SuspendedBy,
} from "../../../ports/lane-store.ts";
import { laneOf, prefixed } from "../columns.ts";
import type { WaitingIntakeRow } from "../statements/intake.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import type { CurrentRow, ExistingRow, UnwatchableRow } from "../statements/transaction.ts";
import { HoleBook } from "./holes.ts";
import type { Found } from "./lookup.ts";
import { ReservationBook } from "./reservations.ts";

/** A locked lane, as it stands after the writes planned so far. */
export interface LanePlan {
  readonly key: LaneKey;
  readonly row: LockedLaneRow;
  cursor: number | null;
  /** One above the highest nonce that this commit itself has given, to a transaction or a caller; 0 where it gave none. */
  givenBelow: number;
  suspendedBy: SuspendedBy | null;
  reconciledEpoch: number;
  confirmed: number;
  failed: number;
  changed: boolean;
}

export interface Allocation {
  readonly intent: PreparedIntent;
  readonly nonce: number;
  readonly lane: LanePlan;
  readonly intake: WaitingIntakeRow | null;
}

/** A transaction as it stands after the steps planned so far. */
export interface Move {
  readonly row: CurrentRow;
  /** Null once it is given up. */
  nonce: number | null;
  state: string;
  subState: string | null;
  lastEvent: string;
  historyCount: number;
  attemptCount: number;
  acceptedOrdinal: number | null;
  claim: { readonly token: number; readonly ordinal: number } | null;
  claims: number;
  /** Undefined leaves the column as it is. */
  lastError: string | null | undefined;
  moved: boolean;
  /** In order; a repeat takes the place of what it repeats. */
  readonly steps: HistoryStep[];
  readonly attempts: { readonly attempt: SignedAttempt; claimed: boolean }[];
  sent: ReadonlySet<number>;
  /** By ordinal: what a node made of it. */
  identified: ReadonlyMap<number, Hash>;
  receipt: Receipt | null | undefined;
  change: QueuedChange | null;
}

export interface HistoryStep {
  readonly tx_id: string;
  readonly ordinal: number;
  readonly chain_id: number;
  readonly event: string;
  readonly from_state: string | null;
  readonly state: string;
  readonly sub_state: string | null;
  readonly node_id: string | null;
  readonly token: number | null;
  readonly reason: string | null;
  readonly actor: string | null;
  readonly audit: Readonly<Record<string, unknown>> | null;
  readonly count: number;
  /** Absent: the time of the transaction. */
  readonly at?: string;
}

export interface PlannedCompletion extends NewCompletion {
  readonly txId: string;
  readonly lane: LanePlan;
  readonly requestId: string | null;
  readonly nonce: number | null;
}

export interface ChainPlan {
  readonly stored: readonly Confirmation[];
  blocks: readonly Confirmation[];
  replacedFrom: number;
  pruneBelow: number;
}

export interface Refusal {
  readonly fate: Extract<IntakeFate, { fate: "refused" }>;
  readonly lane: LanePlan;
  readonly row: WaitingIntakeRow;
}

export class Plan {
  readonly lanes: ReadonlyMap<LaneKey, LanePlan>;
  /** What this commit itself creates signed stands here too. */
  readonly moves: Map<string, Move>;
  /** By lane and request id; grows with what this commit itself creates. */
  readonly requests: Map<string, ExistingTransaction>;
  /** Waiting rows, less those that this commit has settled. */
  readonly intake: Map<number, WaitingIntakeRow>;
  readonly chains: ReadonlyMap<number, ChainPlan>;
  readonly holes: HoleBook;
  readonly reservations: ReservationBook;
  readonly allocations: Allocation[] = [];
  readonly aliases: { readonly intakeId: number; readonly of: string }[] = [];
  readonly refusals: Refusal[] = [];
  /** What is past its watch, by lane. */
  readonly unwatchable: ReadonlyMap<LaneKey, readonly UnwatchableRow[]>;
  readonly unwatched = new Map<string, UnwatchableRow>();
  readonly completions: PlannedCompletion[] = [];
  /** Of the feed, as the transaction found it. */
  readonly epoch: number;
  /** It began because commits may have been lost. Read only where a lane is reconciled. */
  readonly mayHaveLost: boolean;
  /** Of each lane that is to be realigned: the highest nonce that may have left. */
  readonly bound: ReadonlyMap<LaneKey, number | null>;
  /** Of lanes that may have stepped over nonces: those that a transaction has. */
  readonly heldNonces: ReadonlyMap<LaneKey, ReadonlySet<number>>;
  /** How chains begin, as somebody saw it. */
  readonly geneses = new Map<number, Hash>();
  readonly laneDecisions: (LaneDecision & { readonly lane: LanePlan })[] = [];

  constructor(found: Found, epoch: number) {
    this.epoch = epoch;
    this.mayHaveLost = found.history[0]?.may_have_lost ?? false;
    this.lanes = new Map(found.lanes.map(lanePlan).map((lane) => [lane.key, lane]));
    this.moves = new Map(found.transactions.map((row) => [row.tx_id, standing(row)]));
    this.requests = new Map(found.requests.map((row) => [requestKey(row), existingOf(row)]));
    this.intake = new Map(found.intake.map((row) => [row.intake_id, row]));
    this.unwatchable = byLane(found.unwatchable);
    this.bound = new Map(found.bound.map((row) => [laneKey(laneOf(row)), row.nonce]));
    this.heldNonces = noncesByLane(found.heldNonces);
    this.holes = new HoleBook(found.holes);
    this.reservations = new ReservationBook(found.reservations, found.openReservations);
    this.chains = new Map([...found.blocks].map(([chainId, rows]) => [chainId, chainPlan(rows)]));
  }

  /** What this very commit moves is not past its watch, whatever was read before. */
  pastWatch(): readonly UnwatchableRow[] {
    return [...this.unwatched.values()].filter(({ tx_id }) => this.moves.get(tx_id)?.moved !== true);
  }

  /** The database's history changed, and the lane has not been reconciled since or waits for an operator. */
  isHeld(lane: LanePlan): boolean {
    return lane.reconciledEpoch < this.epoch || lane.suspendedBy === "HISTORY";
  }

  /** The locked lane of this term; null where the term is over. */
  held(fence: Fence): LanePlan | null {
    const lane = this.lanes.get(laneKey(fence.lane));
    if (lane === undefined) return null;
    return lane.row.owner_instance === fence.instanceId && lane.row.token === fence.token ? lane : null;
  }
}

export function requestKey(row: { chain_id: number; signer: string; request_id: string | null }): string {
  return `${row.chain_id}:${row.signer}:${row.request_id}`;
}

export function existingOf(row: ExistingRow): ExistingTransaction {
  return {
    txId: row.tx_id,
    lane: laneOf(row),
    requestId: row.request_id,
    nonce: row.nonce,
    state: row.state as State,
    fingerprint: prefixed(row.fingerprint),
  };
}

function noncesByLane(rows: Found["heldNonces"]): ReadonlyMap<LaneKey, ReadonlySet<number>> {
  const nonces = new Map<LaneKey, Set<number>>();
  for (const row of rows) {
    const key = laneKey(laneOf(row));
    nonces.set(key, (nonces.get(key) ?? new Set()).add(row.nonce));
  }
  return nonces;
}

function byLane(rows: readonly UnwatchableRow[]): ReadonlyMap<LaneKey, readonly UnwatchableRow[]> {
  const lanes = new Map<LaneKey, UnwatchableRow[]>();
  for (const row of rows) {
    const key = laneKey(laneOf(row));
    const group = lanes.get(key);
    if (group === undefined) lanes.set(key, [row]);
    else group.push(row);
  }
  return lanes;
}

function lanePlan(row: LockedLaneRow): LanePlan {
  const { next_nonce: cursor, suspended_by: suspendedBy, reconciled_epoch: reconciledEpoch } = row;
  const key = laneKey(laneOf(row));
  return { key, row, cursor, givenBelow: 0, suspendedBy, reconciledEpoch, confirmed: 0, failed: 0, changed: false };
}

/** Most moves have none: a collection for each of them would only be thrown away. */
const NOTHING_SENT: ReadonlySet<number> = new Set();
const NOTHING_IDENTIFIED: ReadonlyMap<number, Hash> = new Map();

export function standing(row: CurrentRow): Move {
  return {
    row,
    nonce: row.nonce,
    state: row.state,
    subState: row.sub_state,
    lastEvent: row.last_event,
    historyCount: row.history_count,
    attemptCount: row.attempt_count,
    acceptedOrdinal: row.accepted_ordinal,
    claim: null,
    claims: 0,
    lastError: undefined,
    moved: false,
    steps: [],
    attempts: [],
    sent: NOTHING_SENT,
    identified: NOTHING_IDENTIFIED,
    receipt: undefined,
    change: null,
  };
}

function chainPlan(rows: readonly { block_number: number; block_hash: string }[]): ChainPlan {
  const stored = rows.map((row) => ({ number: row.block_number, hash: row.block_hash as Hash }));
  return { stored, blocks: stored, replacedFrom: Number.MAX_SAFE_INTEGER, pruneBelow: 0 };
}
