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
  /** All attempt hashes a node tracks on one chain: what a new block's transactions are matched against. */
  readonly hashes: Map<Hash, { readonly lane: OwnedLane; readonly tx: Tracked }>;
  /** Lanes of which something may be in a block, or get into one; some of them have nothing there any more. */
  readonly onChain: Set<OwnedLane>;
}

/** How much is under way of what other work of the lane has to know of. */
interface WorkUnderWay {
  /** Creates that were admitted and have no result yet. */
  readonly creating: number;
  /** Orders to suspend the lane that are not durable yet: nothing is begun meanwhile. */
  readonly suspending: number;
  /** Changes of what is queued: nothing is signed meanwhile, or it might be the payload from before. */
  readonly amending: number;
  /** A look at its intake rows, and those since that passed it over. */
  readonly intake: number;
}

/** One tenure of one lane: everything its owner works with, built from the database and dropped with the term. */
export class OwnedLane {
  readonly term;
  readonly fence;
  readonly lane;
  readonly key;
  /** The acknowledged state; replaced by `fold` only. */
  ledger;
  private work: WorkUnderWay = { creating: 0, suspending: 0, amending: 0, intake: 0 };
  /** The database did not say what became of a move: it may be durable, or be so later. Set once, when this reading ends. */
  mayStillCommit = false;
  /** When it is next looked at, and what was found out under this term; changed by `happened` alone. */
  pace: LanePace = NEW_LANE_PACE;
  /** Nonces below were given out before the database last lost, or may have lost, commits. */
  readonly epochFloor;
  /** The first block of the chain, as the database knows it. */
  readonly genesisHash;
  /** Broadcast, not mined. At most the in-flight window. */
  readonly unmined = new Map<number, Tracked>();
  /** Mined, not final. */
  readonly mined = new Map<number, Tracked>();
  /** Blocks that hold settled transactions still under watch. By hash: a height may have had two, one of them gone. */
  readonly watched = new Map<Hash, number>();
  readonly outcomes = new Outcomes();
  /** Steps that the database has not acknowledged yet, and whose they are. */
  private readonly underWay = new Map<TransitionItem, Tracked>();
  /** Transactions that are not signed yet. */
  readonly backlog;
  /** Kept for callers, or held by nothing. */
  readonly nonces;
  /** For keys that may fill only a part of its queue. */
  readonly queueShares = new QueueShares();
  readonly refusals = new UnconfirmedRefusals();
  /** Null: the node has not set it going yet. */
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

  /** Puts in what a commit did to the lane, once the database has acknowledged it, in the order of commits. */
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

  /** A step of this transaction leaves for the database now. */
  awaitStep(tx: Tracked, item: TransitionItem): void {
    this.underWay.set(item, tx);
  }

  /** Above every nonce that was given; null: the lane is new. */
  get cursor(): number | null {
    return this.ledger.cursor;
  }

  /** Adds to the work in progress; a negative number when it has ended. */
  count(what: keyof WorkUnderWay, by: number): void {
    this.work = { ...this.work, [what]: this.work[what] + by };
  }

  /** 0: none is under way; above 1: others have passed it over since, and it may have more rows. */
  get intakeLooks(): number {
    return this.work.intake;
  }

  get creating(): number {
    return this.work.creating;
  }

  /** The queue is being changed: nothing is signed now. */
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

  /** Nothing may be sent now. */
  get suspended(): boolean {
    const { suspendedBy, reconciled } = this.ledger;
    return this.work.suspending > 0 || suspendedBy !== null || !reconciled || this.term.isKilled;
  }

  /** No nonce may be given either: the database may have forgotten some that were. */
  get heldByHistory(): boolean {
    return this.ledger.suspendedBy === "HISTORY" || !this.ledger.reconciled;
  }

  /** Something of it may be in a block, or get into one. */
  get isOnChain(): boolean {
    return this.unmined.size > 0 || this.mined.size > 0 || this.watched.size > 0;
  }

  /** Nothing in flight, waiting or watched: the lane may be let go. */
  get idle(): boolean {
    return !this.isOnChain && !this.hasUnmined() && this.nonces.reserved === 0;
  }

  hasUnmined(): boolean {
    return this.hasUnminedBefore(0);
  }

  /** True while a transaction before these `own` creates may still change the state they would meet. */
  hasUnminedBefore(own: number): boolean {
    return this.unmined.size > 0 || !this.backlog.isEmpty || this.creating > own;
  }

  /** Nothing is signed or sent: we may not act, an operator said so, or it is not known whether this is still our chain. */
  get held(): boolean {
    return this.suspended || isUnsure(this.pace) || !this.term.mayAct;
  }

  /** The lowest nonce that is not final, as far as it is in memory; null if there is none. */
  lowestOpen(): number | null {
    const lowestOfEach = [this.headOfLine(), lowest(this.mined.keys()), this.backlog.atHand[0]?.nonce ?? null];
    return lowest(lowestOfEach.filter((nonce) => nonce !== null));
  }

  /** The lowest nonce that a node must still mine; null if none is signed. */
  headOfLine(): number | null {
    return lowest(this.unmined.keys());
  }

  /** How many wait for what is mined only after this one. */
  pendingBehind(nonce: number): number {
    let behind = this.backlog.atHand.length;
    for (const each of this.unmined.keys()) if (each > nonce) behind++;
    return behind;
  }

  pendingDepth(): number {
    return this.unmined.size + this.mined.size + this.backlog.atHand.length;
  }

  /** Nonces given and not mined, wherever they wait. */
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

  /** Signed and not settled transactions, by id. */
  find(txId: string): Tracked | null {
    for (const tx of this.unmined.values()) if (tx.txId === txId) return tx;
    for (const tx of this.mined.values()) if (tx.txId === txId) return tx;
    return null;
  }

  track(tx: Tracked): void {
    (tx.receipt === null ? this.unmined : this.mined).set(tx.nonce, tx);
    this.follow(tx);
  }

  /** Every attempt is found by its hash from here on, unless a newer reading of the lane is found by it. */
  follow(tx: Tracked): void {
    if (this.term.hasEnded) return;
    this.index.onChain.add(this);
    for (const hash of hashesOf(tx.attempts)) this.index.hashes.set(hash, { lane: this, tx });
  }

  /** The transaction has a receipt now. */
  mine(tx: Tracked): void {
    happened(tx, mined);
    this.unmined.delete(tx.nonce);
    this.mined.set(tx.nonce, tx);
    if (this.nonces.hasHoleBelow(tx.nonce)) happened(this, holeLookDue);
    const next = this.unmined.get(tx.nonce + 1);
    if (next !== undefined) happened(next, predecessorMined);
  }

  /** The transaction has no receipt any more. */
  unmine(tx: Tracked): void {
    this.mined.delete(tx.nonce);
    this.unmined.set(tx.nonce, tx);
    if (tx.validUntil !== null) happened(this, expiryLookDue);
  }

  /** Nothing of it is waited for at its nonce any more. */
  leave(tx: Tracked): void {
    this.mined.delete(tx.nonce);
    this.unmined.delete(tx.nonce);
    this.unfollow(tx);
  }

  settle(tx: Tracked): void {
    this.leave(tx);
    if (tx.receipt !== null) this.watched.set(tx.receipt.blockHash, tx.receipt.blockNumber);
  }

  /** Nonces that nothing holds, for the next transactions: none that the chain is known to have used. */
  freeNonces(): readonly number[] {
    return this.nonces.free(usedBelow(this.pace));
  }

  /** Queues a transaction that took a hole below others. */
  slipIn(record: AllocatedRecord): void {
    this.backlog.slipIn(record, this.unmined.has(record.nonce) || this.mined.has(record.nonce));
  }

  /**
   * The next transactions that may be signed, in nonce order, within the window above the lowest nonce to be mined. A
   * transaction that its caller signed may be far above the window, and takes no room from those that must be mined
   * before it.
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

  /** The nonce below the head of the line that nothing holds and that it waits for, if there is one. */
  holeBelow(nonce: number): Hole | null {
    const reserved = this.nonces.lowestReserved();
    const [hole] = this.nonces.holes.filter((each) => each.nonce >= this.pace.usedBelow && each.nonce < nonce);
    if (hole === undefined || this.headOfLine() !== nonce) return null;
    return reserved === null || reserved > hole.nonce ? hole : null;
  }

  /** The holders of nonces, as far as they are in memory: claimed ones stay, unsigned ones may move. */
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

  /** Due to be sent, ascending by nonce. What owes a look for its receipt waits for that, what was answered for a verdict. */
  toSend(nowMs: number, limit: number): readonly Tracked[] {
    if (!this.term.maySend) return [];
    const due = this.due(nowMs).filter((tx) => !awaitsVerdict(tx.pace));
    return due.slice(0, limit);
  }

  /** Answered, and yet not mined in time: whether they are sent again or at another price is the lane loop's to say. */
  toJudge(nowMs: number): readonly Tracked[] {
    return this.due(nowMs).filter((tx) => awaitsVerdict(tx.pace));
  }

  /** Wakes what has something to do by now. */
  kickDue(nowMs: number): void {
    if (this.nonces.isDue(nowMs)) this.tending?.kick();
    if (isTimeDue(this.pace, nowMs)) this.activities?.expiring.kick();
    if (this.pace.signer.kind === "away" && nowMs >= this.pace.signer.untilMs) this.signing?.kick();
    if (this.unmined.size === 0) return;
    const due = this.due(nowMs);
    if (due.some((tx) => !awaitsVerdict(tx.pace))) this.broadcasting?.kick();
    if (due.some((tx) => awaitsVerdict(tx.pace))) this.tending?.kick();
  }

  /** A pass is over: wakes what may have something to do now. */
  kick(): void {
    if (!this.backlog.isEmpty) this.signing?.kick();
    if (this.unmined.size > 0) this.broadcasting?.kick();
    if (this.isTended) this.tending?.kick();
  }

  /** True if a kick wakes any work. */
  get hasWork(): boolean {
    return !this.backlog.isEmpty || this.isTended;
  }

  private get isTended() {
    const hasHead = this.pace.head.kind === "at";
    return this.unmined.size > 0 || hasHead || !this.nonces.isWhole || this.nonces.reserved > 0;
  }

  /** Resolves when nothing of this lane is under way any more. */
  async settled(): Promise<void> {
    await Promise.all(Object.values(this.activities ?? {}).map((activity: Activity) => activity.settled()));
  }

  /** The window a node has room for: what is configured; the head alone while it takes no future nonces; one more to try. */
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

  /** Ends this tenure in memory: nothing of it is found by hash any more. */
  stop(how: Ending = "putOff"): void {
    this.term.end(how);
    this.index.onChain.delete(this);
    for (const tx of this.unmined.values()) this.unfollow(tx);
    for (const tx of this.mined.values()) this.unfollow(tx);
  }

  /** A newer reading of the lane keeps its own. */
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
