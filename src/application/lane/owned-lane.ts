import { type Hash, laneKey } from "../../domain/lane.ts";
import {
  type Change,
  foldKept,
  keptOf,
  mayMove,
  stepAcknowledged,
  type TransitionItem,
} from "../../domain/ledger/index.ts";
import type { Holder, Hole } from "../../domain/nonces/holes.ts";
import { usedBelow } from "../../domain/pace/count-events.ts";
import { holeLookDue, isUnsure, type LanePace, NEW_LANE_PACE, openNonces } from "../../domain/pace/lane-pace.ts";
import { expiryLookDue, isTimeDue } from "../../domain/pace/lane-time.ts";
import { awaitsVerdict, mined, predecessorMined } from "../../domain/pace/transaction-pace.ts";
import { hashesOf } from "../../domain/transaction/attempts.ts";
import type { AllocatedRecord, LaneSnapshot } from "../../ports/lane-store.ts";
import { type Activity, type LaneActivities, Outcomes } from "./activity.ts";
import { Backlog } from "./backlog.ts";
import { LaneNonces } from "./lane-nonces.ts";
import { QueueShares } from "./queue-shares.ts";
import type { Ending, Term } from "./term.ts";
import { happened, isDueAt, resumed, type Tracked } from "./tracked.ts";
import { UnconfirmedRefusals } from "./unconfirmed-refusals.ts";

export { queued, resumed, type Tracked } from "./tracked.ts";

export interface LaneIndex {
  /** All attempt hashes that a node tracks on one chain; a new block's transactions are matched against them. */
  readonly hashes: Map<Hash, { readonly lane: OwnedLane; readonly tx: Tracked }>;
  /** Lanes with a transaction that is in a block or may get into one. Other lanes are removed with a delay. */
  readonly onChain: Set<OwnedLane>;
}

/** Counters of work under way that other work of the lane depends on. */
interface WorkUnderWay {
  /** Number of creates that were admitted and have no result yet. */
  readonly creating: number;
  /** Number of suspend actions that are not durable yet: no work begins meanwhile. */
  readonly suspending: number;
  /** Number of changes to queued transactions under way. Nothing is signed meanwhile: it might be the old payload. */
  readonly amending: number;
  /**
   * While this lane handles intake rows: 1 for the read that returned those rows, plus 1 for each later read that
   * skipped this lane. 0 if it handles none.
   */
  readonly intake: number;
}

/** One owned lane for one term: its working state in memory, built from the database and dropped with the term. */
export class OwnedLane {
  readonly term;
  readonly fence;
  readonly lane;
  readonly key;
  /** The state that the database has acknowledged; only `fold` replaces it. */
  ledger;
  private work: WorkUnderWay = { creating: 0, suspending: 0, amending: 0, intake: 0 };
  /** True if a write's outcome is unknown: it may still commit. Set once, when this copy of the lane ends. */
  mayStillCommit = false;
  /** When the lane is next checked, and what was observed during this term; changed only through `happened`. */
  pace: LanePace = NEW_LANE_PACE;
  /** Nonces below this were allocated before the database last lost, or may have lost, commits. */
  readonly epochFloor;
  /** Hash of the chain's first block, as stored in the database. */
  readonly genesisHash;
  /** Transactions that are broadcast and not mined, by nonce; at most the in-flight window. */
  readonly unmined = new Map<number, Tracked>();
  /** Transactions that are mined and not final, by nonce. */
  readonly mined = new Map<number, Tracked>();
  /** Heights, by hash, of the blocks whose settled transactions are still checked for reorgs. */
  readonly watched = new Map<Hash, number>();
  readonly outcomes = new Outcomes();
  /** Steps that the database has not acknowledged yet, with their transactions. */
  private readonly underWay = new Map<TransitionItem, Tracked>();
  /** Transactions that are not signed yet. */
  readonly backlog;
  /** Nonces that are reserved for callers, and holes. */
  readonly nonces;
  /** Queue shares of API keys that may fill only a part of the lane's queue. */
  readonly queueShares = new QueueShares();
  readonly refusals = new UnconfirmedRefusals();
  /** The lane's activities; null until the node starts them. */
  activities: LaneActivities | null = null;
  private readonly index;
  constructor(term: Term, snapshot: LaneSnapshot, index: LaneIndex) {
    this.term = term;
    this.fence = term.fence;
    this.lane = term.fence.lane;
    this.key = laneKey(this.lane);
    this.ledger = keptOf(snapshot);
    this.epochFloor = snapshot.epochFloor;
    this.genesisHash = snapshot.genesisHash;
    this.index = index;
    this.backlog = new Backlog(snapshot.allocated > 0);
    this.nonces = new LaneNonces(() => this.ledger, snapshot.reservations);
    for (const record of snapshot.tracking) this.track(resumed(record));
    for (const block of snapshot.watched) this.watched.set(block.hash, block.number);
    if (this.isOnChain) index.onChain.add(this);
  }

  /** Applies the changes of a commit, once the database has acknowledged it, in commit order. */
  fold(changes: readonly Change[]): void {
    this.ledger = foldKept(this.ledger, changes);
    this.queueShares.fold(changes);
    this.refusals.fold(changes);
    for (const change of changes) {
      if (change.kind !== "moved") continue;
      this.underWay.get(change.item)?.stands(stepAcknowledged, change);
      this.underWay.delete(change.item);
    }
  }

  /** Records that a step of this transaction is being sent to the database. */
  awaitStep(tx: Tracked, item: TransitionItem): void {
    this.underWay.set(item, tx);
  }

  /** The next nonce above every allocated one; null if the lane is new. */
  get cursor(): number | null {
    return this.ledger.cursor;
  }

  /** Changes a counter of work in progress; `by` is negative when the work has ended. */
  count(what: keyof WorkUnderWay, by: number): void {
    this.work = { ...this.work, [what]: this.work[what] + by };
  }

  /** 0 if no read of the intake is under way; above 1 if later reads skipped this lane, which may have more rows. */
  get intakeLooks(): number {
    return this.work.intake;
  }

  get creating(): number {
    return this.work.creating;
  }

  /** True while queued transactions are being changed: nothing is signed then. */
  get amending(): boolean {
    return this.work.amending > 0;
  }

  get signing(): Activity | null {
    return this.activities?.signing ?? null;
  }

  get broadcasting(): Activity | null {
    return this.activities?.broadcasting ?? null;
  }

  get tending(): Activity | null {
    return this.activities?.tending ?? null;
  }

  /** True if nothing may be sent now. */
  get suspended(): boolean {
    const { suspendedBy, reconciled } = this.ledger;
    return this.work.suspending > 0 || suspendedBy !== null || !reconciled || this.term.isKilled;
  }

  /** True if the lane may not even allocate nonces, because the database may have lost some allocations. */
  get heldByHistory(): boolean {
    return this.ledger.suspendedBy === "HISTORY" || !this.ledger.reconciled;
  }

  /** True if a transaction of the lane may be in a block, or get into one. */
  get isOnChain(): boolean {
    return this.unmined.size > 0 || this.mined.size > 0 || this.watched.size > 0;
  }

  /** True if nothing is in flight, waiting to be signed, reserved, or checked for reorgs: the lane may be released. */
  get idle(): boolean {
    return !this.isOnChain && !this.hasUnmined() && this.nonces.reserved === 0;
  }

  hasUnmined(): boolean {
    return this.hasUnminedBefore(0);
  }

  /** True if earlier transactions may still change state that new creates depend on. `own`: number of new creates. */
  hasUnminedBefore(own: number): boolean {
    return this.unmined.size > 0 || !this.backlog.isEmpty || this.creating > own;
  }

  /** True if this node may not act, the lane is suspended or its chain's identity unsure: nothing is signed or sent. */
  get held(): boolean {
    return this.suspended || isUnsure(this.pace) || !this.term.mayAct;
  }

  /** The lowest nonce in memory that is not final; null if there is none. */
  lowestOpen(): number | null {
    const lowestOfEach = [this.headOfLine(), lowest(this.mined.keys()), this.backlog.atHand[0]?.nonce ?? null];
    return lowest(lowestOfEach.filter((nonce) => nonce !== null));
  }

  /** The lowest signed nonce that is not mined; null if there is none. */
  headOfLine(): number | null {
    return lowest(this.unmined.keys());
  }

  /** Number of the lane's transactions that can be mined only after the one with this nonce. */
  pendingBehind(nonce: number): number {
    let behind = this.backlog.atHand.length;
    for (const each of this.unmined.keys()) if (each > nonce) behind++;
    return behind;
  }

  pendingDepth(): number {
    return this.unmined.size + this.mined.size + this.backlog.atHand.length;
  }

  /** Number of nonces that are allocated and not mined, in memory or in the database. */
  unminedDepth(): number {
    const head = this.headOfLine() ?? this.backlog.atHand[0]?.nonce ?? null;
    const given = head === null || this.cursor === null ? 0 : this.cursor - head;
    return Math.max(given, this.unmined.size + this.backlog.atHand.length);
  }

  oldestPendingAt(): Date | null {
    const first = this.headOfLine();
    const tx = first === null ? this.mined.values().next().value : this.unmined.get(first);
    return tx?.createdAt ?? this.backlog.atHand[0]?.createdAt ?? null;
  }

  /** Finds a transaction that is signed and not settled, by id. */
  find(txId: string): Tracked | null {
    for (const tx of this.unmined.values()) if (tx.txId === txId) return tx;
    for (const tx of this.mined.values()) if (tx.txId === txId) return tx;
    return null;
  }

  track(tx: Tracked): void {
    (tx.receipt === null ? this.unmined : this.mined).set(tx.nonce, tx);
    this.follow(tx);
  }

  /** Indexes the transaction's attempts by hash. Does nothing after the term: a newer copy of the lane may exist. */
  follow(tx: Tracked): void {
    if (this.term.hasEnded) return;
    this.index.onChain.add(this);
    for (const hash of hashesOf(tx.attempts)) this.index.hashes.set(hash, { lane: this, tx });
  }

  /** Records that the transaction has a receipt. */
  mine(tx: Tracked): void {
    happened(tx, mined);
    this.unmined.delete(tx.nonce);
    this.mined.set(tx.nonce, tx);
    if (this.nonces.hasHoleBelow(tx.nonce)) happened(this, holeLookDue);
    const next = this.unmined.get(tx.nonce + 1);
    if (next !== undefined) happened(next, predecessorMined);
  }

  /** Records that the transaction has no receipt any more. */
  unmine(tx: Tracked): void {
    this.mined.delete(tx.nonce);
    this.unmined.set(tx.nonce, tx);
    if (tx.validUntil !== null) happened(this, expiryLookDue);
  }

  /** Removes a transaction whose nonce needs no more tracking. */
  leave(tx: Tracked): void {
    this.mined.delete(tx.nonce);
    this.unmined.delete(tx.nonce);
    this.unfollow(tx);
  }

  settle(tx: Tracked): void {
    this.leave(tx);
    if (tx.receipt !== null) this.watched.set(tx.receipt.blockHash, tx.receipt.blockNumber);
  }

  /** Holes that the next transactions may use; none that the chain is known to have used. */
  freeNonces(): readonly number[] {
    return this.nonces.free(usedBelow(this.pace));
  }

  /** Queues a transaction that filled a hole below others. */
  slipIn(record: AllocatedRecord): void {
    this.backlog.slipIn(record, this.unmined.has(record.nonce) || this.mined.has(record.nonce));
  }

  /**
   * The next transactions that may be signed, in nonce order, within the window above the lowest unmined nonce. A
   * transaction that its caller signed may be far above the window; it does not count against the window's size.
   */
  toSign(window: number, limit: number): readonly AllocatedRecord[] {
    const first = this.backlog.atHand[0]?.nonce;
    if (first === undefined) return [];
    const end = Math.min(this.headOfLine() ?? first, first) + window;
    let room = window;
    for (const nonce of this.unmined.keys()) if (nonce < end) room--;
    const fitting = this.backlog.unheld.slice(0, Math.max(0, Math.min(limit, room)));
    return fitting.filter((record) => record.nonce < end);
  }

  /** The hole that blocks the transaction with this nonce, if that is the lane's lowest open one; else null. */
  holeBelow(nonce: number): Hole | null {
    const reserved = this.nonces.lowestReserved();
    const [hole] = this.nonces.holes.filter((each) => each.nonce >= this.pace.usedBelow && each.nonce < nonce);
    if (hole === undefined || this.headOfLine() !== nonce) return null;
    return reserved === null || reserved > hole.nonce ? hole : null;
  }

  /** The transactions in memory that hold nonces. Signed ones keep their nonce; unsigned ones may get another. */
  holders(): readonly Holder[] {
    const claimed = [...this.unmined.values(), ...this.mined.values()];
    return [
      ...claimed.map(({ txId, nonce }) => ({ txId, nonce, movable: false })),
      ...this.backlog.atHand.map(({ txId, nonce, pinned = false }) => {
        const queued = { state: "ALLOCATED", attemptCount: 0, nonce, pinned } as const;
        return { txId, nonce, movable: mayMove(queued, this.epochFloor) };
      }),
    ];
  }

  /** Transactions due to be sent, in nonce order. Leaves out those that wait for a receipt look-up or a new price. */
  toSend(nowMs: number, limit: number): readonly Tracked[] {
    if (!this.term.maySend) return [];
    const due = this.due(nowMs).filter((tx) => !awaitsVerdict(tx.pace));
    return due.slice(0, limit);
  }

  /** Due transactions that a node accepted or called underpriced: the lane's loop resends or reprices each. */
  toJudge(nowMs: number): readonly Tracked[] {
    return this.due(nowMs).filter((tx) => awaitsVerdict(tx.pace));
  }

  /** Wakes the activities that have work due now. */
  kickDue(nowMs: number): void {
    if (this.nonces.isDue(nowMs)) this.tending?.kick();
    if (isTimeDue(this.pace, nowMs)) this.activities?.expiring.kick();
    if (this.pace.signer.kind === "away" && nowMs >= this.pace.signer.untilMs) this.signing?.kick();
    if (this.unmined.size === 0) return;
    const due = this.due(nowMs);
    if (due.some((tx) => !awaitsVerdict(tx.pace))) this.broadcasting?.kick();
    if (due.some((tx) => awaitsVerdict(tx.pace))) this.tending?.kick();
  }

  /** Called after a pass: wakes the activities that may have work now. */
  kick(): void {
    if (!this.backlog.isEmpty) this.signing?.kick();
    if (this.unmined.size > 0) this.broadcasting?.kick();
    if (this.isTended) this.tending?.kick();
  }

  /** True if any activity of the lane has work to do now. */
  get hasWork(): boolean {
    return !this.backlog.isEmpty || this.isTended;
  }

  private get isTended() {
    const hasHead = this.pace.head.kind === "at";
    return this.unmined.size > 0 || hasHead || !this.nonces.isWhole || this.nonces.reserved > 0;
  }

  /** Resolves when no work of this lane is under way any more. */
  async settled(): Promise<void> {
    await Promise.all(Object.values(this.activities ?? {}).map((activity: Activity) => activity.settled()));
  }

  /**
   * The in-flight window. It is the configured size, unless the node refuses future nonces: then only the lowest
   * transaction is sent, and after a while one more to try.
   */
  openWindow(configured: number, nowMs: number): number {
    return Math.min(configured, openNonces(this.pace, nowMs) ?? configured);
  }

  private due(nowMs: number): Tracked[] {
    const due: Tracked[] = [];
    const open = openNonces(this.pace, nowMs);
    const end = open === null ? null : (this.headOfLine() ?? 0) + open;
    for (const tx of this.unmined.values()) {
      if (isDueAt(tx, nowMs) && (end === null || tx.nonce < end)) due.push(tx);
    }
    return due.sort((a, b) => a.nonce - b.nonce);
  }

  /** Ends this term in memory: its transactions are no longer found by hash. */
  stop(how: Ending = "putOff"): void {
    this.term.end(how);
    this.index.onChain.delete(this);
    for (const tx of this.unmined.values()) this.unfollow(tx);
    for (const tx of this.mined.values()) this.unfollow(tx);
  }

  /** Removes the transaction's hashes, unless a newer copy of the lane has indexed them. */
  private unfollow(tx: Tracked) {
    for (const hash of hashesOf(tx.attempts))
      if (this.index.hashes.get(hash)?.lane === this) this.index.hashes.delete(hash);
  }
}

function lowest(nonces: Iterable<number>) {
  let least: number | null = null;
  for (const nonce of nonces) if (least === null || nonce < least) least = nonce;
  return least;
}
