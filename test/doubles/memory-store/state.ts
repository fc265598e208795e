import type { FigureRow } from "../../../src/domain/figures/figures.ts";
import type { SpendRow } from "../../../src/domain/figures/spend.ts";
import { type Hash, type Hex, type Lane, type LaneKey, laneKey } from "../../../src/domain/lane.ts";
import {
  type Approval,
  type Guard,
  isSpent,
  type Ledger,
  type LedgerTransaction,
  type QueuedChange,
  type SuspendedBy,
  type TransactionDetails,
} from "../../../src/domain/ledger/index.ts";
import type { SignatureRecord } from "../../../src/domain/messages/record.ts";
import type { Hole } from "../../../src/domain/nonces/holes.ts";
import type { PolicyRecord } from "../../../src/domain/policy/in-force.ts";
import type { Problem } from "../../../src/domain/text/refusal.ts";
import type { Reservation } from "../../../src/domain/transaction/reservations.ts";
import type { Intent, Payload, SignedAttempt } from "../../../src/domain/transaction/transaction.ts";
import type { AbiDocument } from "../../../src/ports/abi-store.ts";
import type { KillRecord } from "../../../src/ports/kill-store.ts";
import type { InstanceRegistration } from "../../../src/ports/lease-store.ts";
import type { CompletionRecord, HistoryRecord, LaneDecisionRecord } from "../../../src/ports/query-store.ts";
import type { NodeReport, TakeoverRecord } from "../../../src/ports/sight-store.ts";
import { newLedger } from "../../support/whole-ledger.ts";

import type { Applied } from "./commit.ts";
import type { LeftRequestRow } from "./left-requests.ts";
import type { NoticeEntry } from "./notices.ts";
import type { PoolChoiceRow } from "./pools.ts";
import type { SubscriberEntry } from "./subscribers.ts";

export interface InstanceRow extends Omit<InstanceRegistration, "leaseDurationMs" | "chains" | "standsBack"> {
  startedAt: Date;
  heartbeatAt: Date;
  expiresAt: Date;
  counter: number;
  dead: boolean;
  chains: readonly number[];
  draining: boolean;
  standsBack: boolean;
}

/**
 * A row of the lane table: the lane's owner and fencing token, and its ledger with all state that the lane's rules use.
 */
export class LaneRow {
  readonly lane: Lane;
  ledger: Ledger;
  /** Decisions about the lane, newest first. */
  decisions: readonly LaneDecisionRecord[] = [];
  owner: string | null = null;
  token = 0;
  acquiredAt: Date | null = null;
  reconciledEpoch = 1;
  confirmed = 0;
  failed = 0;

  constructor(lane: Lane) {
    this.ledger = newLedger(lane);
    this.lane = this.ledger.lane;
  }

  get cursor(): number | null {
    return this.ledger.cursor;
  }

  set cursor(cursor: number | null) {
    this.ledger = { ...this.ledger, cursor };
  }

  get suspendedBy(): SuspendedBy | null {
    return this.ledger.suspendedBy;
  }

  set suspendedBy(suspendedBy: SuspendedBy | null) {
    this.ledger = { ...this.ledger, suspendedBy };
  }

  copy(): LaneRow {
    return Object.assign(new LaneRow(this.lane), this);
  }
}

export interface StoredAttempt extends SignedAttempt {
  readonly createdAt: Date;
  readonly firstSentAt: Date | null;
}

/** The part of a transaction's state that its ledger does not contain. */
export interface Document {
  readonly lane: Lane;
  readonly payload: Payload;
  readonly gas: bigint | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The payload that is signed instead of the caller's, if it was replaced. */
  readonly change: QueuedChange | undefined;
  readonly history: readonly HistoryRecord[];
  /** The signed bytes and the creation time of each attempt. */
  readonly bytes: readonly Pick<StoredAttempt, "rawTransaction" | "createdAt">[];
  readonly claim: { readonly token: number; readonly ordinal: number } | null;
  /** True if the caller named the nonce. */
  readonly pinned: boolean;
  readonly updatedAt: Date;
  readonly confirmedAt: Date | null;
}

/** A transaction as queries return it. */
export type TransactionRow = Document &
  Omit<LedgerTransaction, "details" | "fingerprint" | "attempts" | "minedIn"> &
  TransactionDetails & { readonly fingerprint: Hex; readonly attempts: readonly StoredAttempt[] };

/**
 * Copies field by field: a long simulation reads millions of these rows, and objects of equal shape are fast to read.
 */
export function rowOf(tx: LedgerTransaction, document: Document): TransactionRow {
  const { details, fingerprint, attempts } = tx;
  if (details === undefined || fingerprint === undefined || attempts === undefined)
    throw new Error(`${tx.txId} was loaded in part`);
  return {
    txId: tx.txId,
    lane: document.lane,
    requestId: tx.requestId,
    owner: tx.owner,
    nonce: tx.nonce,
    state: tx.state,
    subState: tx.subState,
    live: tx.live,
    lastEvent: tx.lastEvent,
    steps: tx.steps,
    attemptCount: tx.attemptCount,
    acceptedOrdinal: tx.acceptedOrdinal,
    validUntil: tx.validUntil,
    heldSince: tx.heldSince,
    expiredAt: tx.expiredAt,
    fingerprint,
    createdAt: details.createdAt,
    attempts: attempts.flatMap((attempt, index) => {
      const stored = document.bytes[index];
      return stored === undefined ? [] : { ...attempt, ...stored };
    }),
    receipt: details.receipt,
    submitAttempts: details.submitAttempts,
    lastSubmittedAt: details.lastSubmittedAt,
    lostSightAt: details.lostSightAt,
    lastError: details.lastError,
    payload: document.payload,
    gas: document.gas,
    metadata: document.metadata,
    change: document.change,
    history: document.history,
    bytes: document.bytes,
    claim: document.claim,
    pinned: document.pinned,
    updatedAt: document.updatedAt,
    confirmedAt: document.confirmedAt,
  };
}

export interface IntakeEntry {
  readonly intakeId: number;
  readonly intent: Intent;
  readonly createdAt: Date;
  readonly aliasOf: string | null;
  readonly approval: Approval | null;
  /** When an operator put the request on hold; absent if it is not on hold. */
  readonly heldSince?: Date;
  /** How often the request was put on hold or released. */
  readonly holds?: number;
  readonly unanswered: boolean;
  /** History while the request waited for approval; empty if it never did. */
  readonly history: readonly HistoryRecord[];
}

/** Everything that a database holds, in one object shared by all connected stores. */
export class DatabaseState {
  instances = new Map<string, InstanceRow>();
  readonly kills = new Map<string, KillRecord>();
  readonly notices = new Map<string, NoticeEntry>();
  /** Keys of the session locks that are held. */
  locks = new Set<number>();
  /** The key of the session lock that each instance has published, by the instance's id. */
  readonly published = new Map<string, number>();
  lanes = new Map<LaneKey, LaneRow>();
  transactions = new Map<string, TransactionRow>();
  /** The attempt to which each transaction hash belongs, by chain and hash. */
  hashes = new Map<string, { readonly txId: string; readonly ordinal: number }>();
  intake = new Map<number, IntakeEntry>();
  /** The lane that a pool chose for each request, by transaction id. */
  poolChoices = new Map<string, PoolChoiceRow>();
  /** Reasons why enqueued intents were declined, for the nodes that enqueued them. */
  declined = new Map<string, Problem>();
  /** Requests that a node enqueued because it cannot reach their owner. */
  leftRequests = new Map<string, LeftRequestRow>();
  confirmations = new Map<number, ReadonlyMap<number, Hash>>();
  geneses = new Map<number, Hash>();
  subscribers = new Map<string, SubscriberEntry>();
  abis: AbiDocument = { items: [], changedAt: null, changedBy: null };
  /** Statistics, by bucket and by the instance that counted them. */
  figures = new Map<string, FigureRow>();
  spend = new Map<string, SpendRow>();
  /** The next nonce of each lane at the beginning of the feed's epoch. */
  epochFloors = new Map<LaneKey, number>();
  /** Usage of API keys, by chain. */
  keyUse = new Map<number, Guard["keyUse"]>();
  policy: PolicyRecord = {
    ...{ version: 0, stamp: "0", document: null },
    ...{ changedAt: null, changedBy: null, reason: null },
  };
  /**
   * The last number given to a policy document. Each stored document gets a new one; not even a restore repeats a
   * number.
   */
  lastStamp = 0;
  /** Each instance's last report about facts that only this instance can observe. */
  reports = new Map<string, NodeReport>();
  /** Lanes that moved from one node to another, newest last. */
  takeovers: TakeoverRecord[] = [];
  completions: CompletionRecord[] = [];
  feed = { epoch: 1, lastSeq: 0, truncatedThrough: 0, epochStartsAfter: 0 };
  lastIntakeId = 0;
  /** Identity of the database's history; a restore or a failover changes it. */
  history = 1;
  /** True if this server may lack commits of its predecessor. */
  mayHaveLost = false;
  /**
   * The database history in which the feed's epoch began, and whether the epoch began because commits may have been
   * lost.
   */
  epochHistory = 1;
  epochMayHaveLost = false;
  /** Called after each commit with the writes to ledgers that it applied. */
  readonly watchers: ((applied: readonly Applied[]) => void)[] = [];

  /** A copy that later changes do not affect. */
  copy(): DatabaseState {
    return Object.assign(new DatabaseState(), this, {
      instances: new Map([...this.instances].map(([id, row]) => [id, { ...row }])),
      locks: new Set(this.locks),
      published: new Map(this.published),
      kills: new Map(this.kills),
      notices: new Map(this.notices),
      lanes: new Map([...this.lanes].map(([key, row]) => [key, row.copy()])),
      transactions: new Map(this.transactions),
      hashes: new Map(this.hashes),
      intake: new Map(this.intake),
      poolChoices: new Map(this.poolChoices),
      declined: new Map(this.declined),
      leftRequests: new Map(this.leftRequests),
      confirmations: new Map(this.confirmations),
      geneses: new Map(this.geneses),
      subscribers: new Map(this.subscribers),
      figures: new Map(this.figures),
      spend: new Map(this.spend),
      epochFloors: new Map(this.epochFloors),
      keyUse: new Map(this.keyUse),
      reports: new Map(this.reports),
      takeovers: [...this.takeovers],
      completions: [...this.completions],
      feed: { ...this.feed },
    });
  }

  lane(lane: Lane): LaneRow | undefined {
    return this.lanes.get(laneKey(lane));
  }

  /** The unused nonces (holes) of every lane, ascending within a lane. */
  holes(): readonly (Hole & { readonly lane: Lane })[] {
    return [...this.lanes.values()].flatMap(({ lane, ledger }) =>
      ledger.holes.every().map(([, hole]) => ({ ...hole, lane })),
    );
  }

  reservations(): readonly Reservation[] {
    return [...this.lanes.values()].flatMap(({ ledger }) => ledger.reservations.every().map(([, each]) => each));
  }

  signatures(): readonly SignatureRecord[] {
    return [...this.lanes.values()].flatMap(({ ledger }) =>
      ledger.messages.every().flatMap(([, each]) => (isSpent(each) ? [] : each)),
    );
  }

  reservation(reservationId: string): Reservation | undefined {
    return this.reservations().find((each) => each.reservationId === reservationId);
  }
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

/**
 * True if an intake row is due. A row that is on hold is not due. Any other row is due if it needs no approval, if it
 * was approved, or if its approval or its deadline expired.
 */
export function isDue({ approval, intent, heldSince }: IntakeEntry, now: Date): boolean {
  if (heldSince !== undefined) return false;
  return approval === null || approval.approved || approval.expiresAt <= now || isOver(intent, now);
}

export function isOver({ validUntil }: Pick<Intent, "validUntil">, now: Date): boolean {
  return validUntil !== undefined && validUntil <= now;
}

/** Waiting intake rows in call order, without aliases (rows that only point to another row). */
export function waitingIntake(state: DatabaseState): readonly IntakeEntry[] {
  return [...state.intake.values()].filter((entry) => entry.aliasOf === null);
}
