import type { Kill } from "../../src/domain/cluster/kills.ts";
import type { Acknowledgement } from "../../src/domain/cluster/notices.ts";
import type { StoredStep } from "../../src/domain/figures/figures.ts";
import type { Limits } from "../../src/domain/keys/principal.ts";
import { type Address, type Fence, type Hash, type Hex, type Lane, laneKey } from "../../src/domain/lane.ts";
import { actionKeyOf, isSpent, reservationAt } from "../../src/domain/ledger/index.ts";
import { KnownPolicy, type PolicyInForce } from "../../src/domain/policy/in-force.ts";
import type { Intent } from "../../src/domain/transaction/transaction.ts";
import type { AbiStore, NamedAbi } from "../../src/ports/abi-store.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { CountedRows, FigureFilter, FigureStore } from "../../src/ports/figure-store.ts";
import type { KeyRecord, KeyStore } from "../../src/ports/key-store.ts";
import type { KillRecord, KillStore } from "../../src/ports/kill-store.ts";
import {
  type ActionKey,
  type AskedOfPool,
  type AskedRequests,
  type Committed,
  HistoryChanged,
  type LaneStore,
  type LaneWrite,
  OutcomeUnknown,
  StoreUnavailable,
} from "../../src/ports/lane-store.ts";
import type {
  Announcement,
  DeathEvidence,
  InstanceRegistration,
  LeaseStore,
  LockPublished,
  Registered,
} from "../../src/ports/lease-store.ts";
import type { LeftRequest, LeftRequestStore } from "../../src/ports/left-request-store.ts";
import type { NoticeFilter, NoticeStore } from "../../src/ports/notice-store.ts";
import type { PolicyChange, PolicyChanged, PolicyStore } from "../../src/ports/policy-store.ts";
import type {
  Census,
  CostFilter,
  FeedPage,
  LaneFilter,
  ListFilter,
  QueryStore,
  SignatureFilter,
} from "../../src/ports/query-store.ts";
import type { HeldLock } from "../../src/ports/session-lock.ts";
import type { NodeReport, SearchTerms, SightStore } from "../../src/ports/sight-store.ts";
import type { SubscriberStore } from "../../src/ports/subscriber-store.ts";
import { census } from "./memory-store/census.ts";
import { commitWrites, holds } from "./memory-store/commit.ts";
import { MemoryKeys } from "./memory-store/keys.ts";
import * as leases from "./memory-store/leases.ts";
import * as left from "./memory-store/left-requests.ts";
import * as notices from "./memory-store/notices.ts";
import * as policies from "./memory-store/policies.ts";
import * as pools from "./memory-store/pools.ts";
import * as queries from "./memory-store/queries.ts";
import * as sights from "./memory-store/sights.ts";
import { DatabaseState, sameLane, waitingIntake } from "./memory-store/state.ts";
import * as subscribers from "./memory-store/subscribers.ts";

const A_DAY_MS = 86_400_000;

/**
 * A fault of the next commit: either nothing is committed, or the caller does not learn whether it was committed. A late
 * one is still on its way to the server when the caller gives up.
 */
export type CommitFault = "unavailable" | "busy" | "unknown-committed" | "unknown-lost" | { readonly lateMs: number };

/**
 * A database in memory for any number of nodes. Its clock is the database's and decides expiry. Every call takes effect
 * at one instant. A promise awaited before it and one after it simulate the way to the database and back.
 */
export class MemoryDatabase {
  readonly clock: Clock;
  readonly state = new DatabaseState();
  readonly keys: MemoryKeys;
  /** How far the server's clock is ahead of the world's, in ms. */
  aheadMs = 0;
  private upSinceMs: number;
  private sessions = 0;

  constructor(clock: Clock) {
    this.clock = Object.create(clock, { now: { value: () => new Date(clock.now().getTime() + this.aheadMs) } });
    this.keys = new MemoryKeys(this.clock);
    this.upSinceMs = clock.monotonicMs() - A_DAY_MS;
  }

  /** Begins a session with a lock key that no other session has. */
  beginSession(): { readonly key: number; readonly serverUpMs: number } {
    const key = ++this.sessions;
    this.state.locks.add(key);
    return { key, serverUpMs: this.clock.monotonicMs() - this.upSinceMs };
  }

  /**
   * Marks the server as just restarted, so that sessions begun before do not count. The sessions themselves are ended
   * separately.
   */
  restarted(): void {
    this.upSinceMs = this.clock.monotonicMs();
  }

  connect(): MemoryStore {
    return new MemoryStore(this);
  }

  /** Simulates a failover: writers that registered under the previous history are refused until they register again. */
  changeHistory(mayHaveLost = false): void {
    this.state.history++;
    this.state.mayHaveLost = mayHaveLost;
  }

  /** A copy of the database's content, as a backup. */
  snapshot(): DatabaseState {
    return this.state.copy();
  }

  /** Restores a snapshot; later changes are lost. The history gets a new identity that was never used before. */
  restore(snapshot: DatabaseState): void {
    const { history, locks, lastStamp } = this.state;
    Object.assign(this.state, snapshot.copy(), { history, locks, lastStamp });
    this.changeHistory(true);
  }

  /** Puts policies into force that no node of this release can read. */
  applyUnreadable(): void {
    policies.applyUnreadable(this.state, this.clock.now());
  }

  /** Inserts an intent as `insertIntake` does once the caller's transaction has committed. */
  insertIntake(intent: Intent, unanswered = false): void {
    const intakeId = ++this.state.lastIntakeId;
    const entry = { intakeId, intent, createdAt: this.clock.now(), aliasOf: null, approval: null, history: [] };
    this.state.intake.set(intakeId, { ...entry, unanswered });
  }
}

/** One node's connection to the database; each connection has its own injected faults. */
export class MemoryStore
  implements
    LeaseStore,
    LaneStore,
    QueryStore,
    SightStore,
    FigureStore,
    AbiStore,
    KeyStore,
    KillStore,
    NoticeStore,
    LeftRequestStore,
    PolicyStore,
    SubscriberStore
{
  readonly database: MemoryDatabase;
  readonly knownPolicy = new KnownPolicy();
  private readonly faults: CommitFault[] = [];
  private readonly leaveFaults: CommitFault[] = [];
  /** Commits whose bytes have not reached the server yet. */
  private readonly late = new Set<() => void>();
  private down = false;
  private gate: { readonly opened: Promise<void>; readonly open: () => void } | null = null;
  private knownHistory: number;
  private seenSeq = 0;

  constructor(database: MemoryDatabase) {
    this.database = database;
    this.knownHistory = database.state.history;
  }

  /** Queues a fault; each commit consumes one. */
  failNextCommit(fault: CommitFault): void {
    this.faults.push(fault);
  }

  /** Queues a fault for the next insert into the intake table. */
  failNextLeave(fault: CommitFault): void {
    this.leaveFaults.push(fault);
  }

  /** Clears the queued faults. */
  forgetFaults(): void {
    this.faults.length = 0;
  }

  /** Makes calls wait, as behind a frozen network, until `resume`. */
  pause(): void {
    if (this.gate !== null) return;
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    this.gate = { opened, open };
  }

  resume(): void {
    this.gate?.open();
    this.gate = null;
  }

  /** Makes every call fail until `heal`. */
  cut(): void {
    this.down = true;
  }

  heal(): void {
    this.down = false;
  }

  async close(): Promise<void> {
    this.cut();
  }

  async commit(writes: readonly LaneWrite[]): Promise<Committed> {
    await this.reach();
    this.checkHistory();
    const fault = this.faults.shift();
    if (fault === "unavailable") throw new StoreUnavailable("the database is away");
    if (fault === "busy") throw new StoreUnavailable("the database is busy", { busy: true });
    if (fault === "unknown-lost") throw new OutcomeUnknown("the connection died at COMMIT");
    if (typeof fault === "object") this.commitLate(writes, fault.lateMs);
    if (typeof fault === "object") throw new OutcomeUnknown("no answer to COMMIT");
    const committed = this.commitNow(writes);
    if (fault === "unknown-committed") throw new OutcomeUnknown("the connection died at COMMIT");
    await Promise.resolve();
    return committed;
  }

  private commitNow(writes: readonly LaneWrite[]): Committed {
    const inForce = this.followPolicy();
    return commitWrites(this.state, writes, { now: this.now(), policies: inForce.policies });
  }

  /**
   * Commits when the bytes arrive: by then the term may be over, or a failover may have happened. This process never
   * learns of it, and before it loads a lane it makes sure that nothing of its own can arrive any more.
   */
  private commitLate(writes: readonly LaneWrite[], lateMs: number): void {
    const { knownHistory } = this;
    const cancel = this.database.clock.after(lateMs, () => {
      this.late.delete(cancel);
      if (knownHistory !== this.state.history) return;
      try {
        this.commitNow(writes);
      } catch {
        // The server rolls it back, and there is nobody who could be given the reason.
      }
    });
    this.late.add(cancel);
  }

  async registerInstance(registration: InstanceRegistration): Promise<Registered> {
    await this.reach();
    const begun = this.state.epochHistory !== this.state.history;
    if (begun) leases.beginEpoch(this.state, this.seenSeq);
    this.knownHistory = this.state.history;
    leases.registerInstance(this.state, registration, this.now());
    return { epoch: this.state.feed.epoch, begun, mayHaveLost: this.state.epochMayHaveLost };
  }

  async renewInstance(instanceId: string, leaseDurationMs: number): Promise<boolean> {
    await this.reach();
    this.checkHistory();
    return leases.renewInstance(this.state, instanceId, { durationMs: leaseDurationMs, now: this.now() });
  }

  async announce(instanceId: string, announcement: Announcement): Promise<void> {
    await this.reach();
    this.checkHistory();
    leases.announce(this.state, instanceId, announcement);
  }

  async publishLock(instanceId: string, lock: HeldLock | null): Promise<LockPublished> {
    await this.reach();
    this.checkHistory();
    return leases.publishLock(this.state, { instanceId, lock, now: this.now() });
  }

  async signersOf(instanceId: string): Promise<readonly Address[]> {
    await this.reach();
    return this.state.instances.get(instanceId)?.signers ?? [];
  }

  async readPolicy(): Promise<PolicyInForce> {
    await this.reach();
    return this.followPolicy();
  }

  async changePolicy(change: PolicyChange): Promise<PolicyChanged> {
    await this.reach();
    this.checkHistory();
    const outcome = policies.changePolicy(this.state, change, this.now());
    return { outcome, inForce: this.followPolicy() };
  }

  async instances() {
    await this.reach();
    return leases.listInstances(this.state, this.now());
  }

  async keepKills(kills: readonly Kill[]): Promise<void> {
    await this.reach();
    this.checkHistory();
    for (const kill of kills) {
      if (!this.state.kills.has(kill.killId))
        this.state.kills.set(kill.killId, { ...kill, at: this.now(), ended: false });
    }
  }

  async endKills({ signer }: Omit<Kill, "killId">, unkept: readonly Kill[]): Promise<void> {
    await this.keepKills(unkept);
    for (const [killId, kill] of this.state.kills) {
      if (kill.signer === signer) this.state.kills.set(killId, { ...kill, ended: true });
    }
  }

  async kills(killIds: readonly string[]): Promise<readonly KillRecord[]> {
    await this.reach();
    return [...this.state.kills.values()].filter(({ killId, ended }) => !ended || killIds.includes(killId));
  }

  async notices(filter: NoticeFilter) {
    await this.reach();
    return notices.listNotices(this.state, filter);
  }

  async notice(noticeId: string) {
    await this.reach();
    return this.state.notices.get(noticeId)?.notice ?? null;
  }

  async markAcknowledged(asked: Acknowledgement) {
    await this.reach();
    this.checkHistory();
    return notices.acknowledge(this.state, asked, this.now());
  }

  async forgetNotices(ageMs: number, most: number): Promise<number> {
    await this.reach();
    this.checkHistory();
    return notices.forget(this.state, new Date(this.now().getTime() - ageMs), most);
  }

  async declareDead(instanceId: string, counter: number, evidence: DeathEvidence): Promise<boolean> {
    await this.reach();
    this.checkHistory();
    return leases.declareDead(this.state, { instanceId, counter, evidence }, this.now());
  }

  async retireInstance(instanceId: string): Promise<number> {
    await this.reach();
    this.checkHistory();
    return leases.retireInstance(this.state, instanceId);
  }

  async acquireLane(lane: Lane, instanceId: string) {
    await this.reach();
    this.checkHistory();
    return leases.acquireLane(this.state, lane, { instanceId, now: this.now() });
  }

  async claimLanes(lanes: readonly Lane[], instanceId: string, limit: number) {
    await this.reach();
    this.checkHistory();
    return leases.claimLanes(this.state, lanes, { instanceId, limit, now: this.now() });
  }

  async releaseLane(fence: Fence): Promise<boolean> {
    await this.reach();
    this.checkHistory();
    return leases.releaseLane(this.state, fence);
  }

  async leases() {
    await this.reach();
    return leases.listLeases(this.state);
  }

  async loadLane(fence: Fence) {
    await this.reach();
    for (const cancel of this.late) cancel();
    this.late.clear();
    this.followPolicy();
    return queries.loadLane(this.state, fence, this.now());
  }

  async loadAllocated(lane: Lane, fromNonce: number, limit: number) {
    await this.reach();
    return queries.loadAllocated(this.state, lane, { fromNonce, limit });
  }

  async loadExpiring(lane: Lane, limit: number) {
    await this.reach();
    return queries.loadExpiring(this.state, lane, { limit, now: this.now() });
  }

  async loadRawTransactions(keys: readonly { readonly txId: string; readonly ordinal: number }[]) {
    await this.reach();
    return keys.map(({ txId, ordinal }): Hex => {
      const bytes = this.state.transactions.get(txId)?.bytes[ordinal - 1]?.rawTransaction ?? null;
      if (bytes === null)
        throw new Error(`the database has no signed bytes of transaction ${txId}, attempt ${ordinal}`);
      return bytes;
    });
  }

  async loadPayloads(txIds: readonly string[]) {
    await this.reach();
    return txIds.map((txId) => {
      const row = this.state.transactions.get(txId);
      if (row === undefined) throw new Error(`the database has no payload of transaction ${txId}`);
      return { payload: row.change?.payload ?? row.payload, gas: row.change?.gas ?? (row.gas as bigint) };
    });
  }

  async openOf(lane: Lane, owner: string) {
    await this.reach();
    return queries.openOf(this.state, lane, owner);
  }

  async settledBelow(lane: Lane): Promise<number> {
    await this.reach();
    return queries.settledBelow(this.state, lane);
  }

  async loadWatched(lane: Lane, blockHashes: readonly Hash[]) {
    await this.reach();
    return queries.loadWatched(this.state, lane, blockHashes);
  }

  async findByRequestIds(asked: readonly AskedRequests[]) {
    await this.reach();
    return asked.flatMap(({ lane, requestIds }) => queries.findByRequestIds(this.state, lane, requestIds));
  }

  async loadIntake(lanes: readonly Lane[], limit: number, resting: readonly number[] = []) {
    await this.reach();
    return queries.loadIntake(this.state, lanes, { limit, now: this.now(), resting });
  }

  async leaveRequests(requests: readonly LeftRequest[], forMs: number): Promise<void> {
    await this.reach();
    this.checkHistory();
    const fault = this.leaveFaults.shift();
    if (fault === "unavailable") throw new StoreUnavailable("the database is away");
    const until = new Date(this.now().getTime() + forMs);
    for (const request of requests) left.leaveRequest(this.state, request, until);
    if (fault === "unknown-committed") throw new OutcomeUnknown("the connection died at COMMIT");
    await Promise.resolve();
  }

  async whatWaits() {
    await this.reach();
    const requests = left.openRequests(this.state, this.now()).length > 0;
    return { intents: queries.hasIntake(this.state, this.now()), requests };
  }

  async beginRequests(lanes: readonly Lane[], instanceId: string, except: readonly string[]) {
    await this.reach();
    return left.beginRequests(this.state, instanceId, { lanes, except, now: this.now() });
  }

  async answerRequest(leftId: string, instanceId: string, answer: string): Promise<void> {
    await this.reach();
    left.changeBegun(this.state, { leftId, instanceId }, { answer });
  }

  async putBackRequest(leftId: string, instanceId: string): Promise<void> {
    await this.reach();
    left.changeBegun(this.state, { leftId, instanceId }, { begunBy: null });
  }

  async leftStanding(leftIds: readonly string[]) {
    await this.reach();
    return left.leftStanding(this.state, leftIds);
  }

  async withdrawRequest(leftId: string, accepts: readonly Intent[]) {
    await this.reach();
    const isWithdrawn = left.withdrawRequest(this.state, leftId);
    if (isWithdrawn) for (const intent of accepts) this.database.insertIntake(intent);
    return isWithdrawn;
  }

  async transaction(txId: string) {
    await this.reach();
    return queries.findTransaction(this.state, txId);
  }

  async transactionAt(lane: Lane, nonce: number) {
    await this.reach();
    const txId = this.state.lane(lane)?.ledger.nonces.get(nonce) ?? null;
    return txId === null ? null : queries.findTransaction(this.state, txId);
  }

  async findPooled(asked: readonly AskedOfPool[]) {
    await this.reach();
    return pools.findPooled(this.state, asked);
  }

  async queues(lanes: readonly Lane[]) {
    await this.reach();
    return pools.queues(this.state, lanes, this.now());
  }

  async poolOf(txId: string) {
    await this.reach();
    return this.state.poolChoices.get(txId)?.pool ?? null;
  }

  async firstHashes(txIds: readonly string[]) {
    await this.reach();
    return txIds.flatMap((txId) => {
      const found = queries.findTransaction(this.state, txId);
      if (found === null || !this.state.transactions.has(found.txId)) return [];
      return [{ txId, state: found.state, txHash: found.attempts[0]?.txHash ?? null }];
    });
  }

  async transactionByRequest(lane: Lane, requestId: string) {
    await this.reach();
    const owner = queries.ownerOfRequest(this.state, lane, requestId);
    const waiting = waitingIntake(this.state).find(
      ({ intent }) => intent.requestId === requestId && sameLane(intent.lane, lane),
    );
    const txId = (isSpent(owner) ? null : owner)?.txId ?? waiting?.intent.txId;
    return txId === undefined ? null : queries.findTransaction(this.state, txId);
  }

  async transactions(filter: ListFilter) {
    await this.reach();
    return queries.listTransactions(this.state, filter);
  }

  async costsOf(txIds: readonly string[]) {
    await this.reach();
    return queries.costsOfTransactions(this.state, txIds);
  }

  async costs(filter: CostFilter) {
    await this.reach();
    return queries.costsOf(this.state, filter);
  }

  async history(txId: string) {
    await this.reach();
    return queries.historyOf(this.state, txId);
  }

  async reservation(reservationId: string) {
    await this.reach();
    const found = this.state.reservation(reservationId);
    return found === undefined ? null : reservationAt(found, this.now());
  }

  async signature(signatureId: string) {
    await this.reach();
    return this.state.signatures().find((each) => each.signatureId === signatureId) ?? null;
  }

  async signatures(filter: SignatureFilter) {
    await this.reach();
    return queries.listSignatures(this.state, filter, this.now());
  }

  async confirmations(chainId: number, aboveBlock: number, limit: number) {
    await this.reach();
    return [...(this.state.confirmations.get(chainId) ?? [])]
      .map(([number, hash]) => ({ number, hash }))
      .filter((block) => block.number > aboveBlock)
      .sort((a, b) => a.number - b.number)
      .slice(0, limit);
  }

  async feed(after: number, limit: number): Promise<FeedPage> {
    await this.reach();
    this.seenSeq = Math.max(this.seenSeq, this.state.feed.lastSeq);
    return { ...this.state.feed, items: this.state.completions.filter(({ seq }) => seq > after).slice(0, limit) };
  }

  async carriedOut(lane: Lane, actionKey: Pick<ActionKey, "subject" | "key">) {
    await this.reach();
    return this.state.lanes.get(laneKey(lane))?.ledger.actionKeys.get(actionKeyOf(actionKey)) ?? null;
  }

  async laneDecisions(lane: Lane, limit: number) {
    await this.reach();
    return (this.state.lanes.get(laneKey(lane))?.decisions ?? []).slice(0, limit);
  }

  async lanesAfter(after: Lane | null, limit: number, filter?: LaneFilter) {
    await this.reach();
    return queries.listLanesAfter(this.state, { after, limit, ...(filter && { filter }) }, this.now());
  }

  async lanes(signer: Address) {
    await this.reach();
    return queries.listLanes(this.state, signer, this.now());
  }

  async troubles(limit: number) {
    await this.reach();
    return sights.troubles(this.state, limit, this.now());
  }

  async unownedLanes(limit: number) {
    await this.reach();
    return sights.unownedLanes(this.state, limit);
  }

  async totals(limits: Limits) {
    await this.reach();
    return sights.totals(this.state, limits, this.now());
  }

  async abis() {
    await this.reach();
    return this.state.abis;
  }

  async replaceAbis(items: readonly NamedAbi[], changedBy: string) {
    await this.reach();
    this.state.abis = { items: structuredClone(items), changedAt: this.now(), changedBy };
    return this.state.abis;
  }

  async writeFigures(fence: Fence, { figures, spend }: CountedRows) {
    await this.reach();
    if (!holds(this.state, fence, this.now())) return false;
    for (const [key, { stepSeconds, at }] of this.state.figures) {
      const keptMs = stepSeconds === 60 ? 26 * 3_600_000 : 31 * 86_400_000;
      if (at.getTime() < this.now().getTime() - keptMs) this.state.figures.delete(key);
    }
    for (const [key, { at }] of this.state.spend) {
      if (at.getTime() < this.now().getTime() - 32 * 86_400_000) this.state.spend.delete(key);
    }
    for (const row of figures) {
      const { signer, stepSeconds, at, chainId } = row;
      this.state.figures.set([signer, stepSeconds, at.getTime(), chainId, fence.instanceId].join(" "), row);
    }
    for (const row of spend) {
      this.state.spend.set([row.signer, row.at.getTime(), row.chainId, fence.instanceId].join(" "), row);
    }
    return true;
  }

  async figures(stepSeconds: StoredStep, filter: FigureFilter) {
    await this.reach();
    return sights.figures(this.state, stepSeconds, filter);
  }

  async spenders(filter: FigureFilter, limit: number) {
    await this.reach();
    return sights.spenders(this.state, filter, limit);
  }

  async pulse() {
    await this.reach();
    return sights.pulse(this.state, this.now());
  }

  async oldestOpen(chainIds: readonly number[]) {
    await this.reach();
    return sights.oldestOpen(this.state, chainIds);
  }

  async search(terms: SearchTerms) {
    await this.reach();
    return sights.search(this.state, terms);
  }

  async nonces(lane: Lane, from: number, to: number) {
    await this.reach();
    return sights.nonces(this.state, lane, from, to);
  }

  async report(report: NodeReport): Promise<void> {
    await this.reach();
    this.checkHistory();
    this.state.reports.set(report.instanceId, report);
  }

  async reports() {
    await this.reach();
    return sights.reports(this.state, this.now());
  }

  async endedReports() {
    await this.reach();
    return sights.endedReports(this.state, this.now());
  }

  async past(limit: number) {
    await this.reach();
    return sights.past(this.state, limit, this.now());
  }

  async policyUse(lane: Lane, of: { readonly txId?: string; readonly owner?: string }) {
    await this.reach();
    this.followPolicy();
    return queries.policyUse(this.state, lane, { ...of, at: this.now() });
  }

  async messageUse(lane: Lane) {
    await this.reach();
    this.followPolicy();
    const used = this.state.lane(lane)?.ledger.messageUse.every() ?? [];
    return { at: this.now(), used: new Map(used) };
  }

  async allPolicyUse() {
    await this.reach();
    return queries.policyUsage(this.state, this.now());
  }

  async census(): Promise<Census> {
    await this.reach();
    return census(this.state, this.now());
  }

  async apiKeys(): Promise<readonly KeyRecord[]> {
    await this.reach();
    return this.database.keys.apiKeys();
  }

  async addApiSecret(...asked: Parameters<KeyStore["addApiSecret"]>): ReturnType<KeyStore["addApiSecret"]> {
    await this.reach();
    return this.database.keys.addApiSecret(...asked);
  }

  async revokeApiKey(name: string, secret: string | null): Promise<boolean> {
    await this.reach();
    return this.database.keys.revokeApiKey(name, secret);
  }

  async subscribers() {
    await this.reach();
    return subscribers.listSubscribers(this.state, this.now());
  }

  async addSubscriber(...[subscriber, actor]: Parameters<SubscriberStore["addSubscriber"]>) {
    await this.reach();
    this.checkHistory();
    return subscribers.addSubscriber(this.state, subscriber, { actor, now: this.now() });
  }

  async changeSubscriber(...[decision]: Parameters<SubscriberStore["changeSubscriber"]>) {
    await this.reach();
    this.checkHistory();
    return subscribers.changeSubscriber(this.state, decision, this.now());
  }

  async removeSubscriber(...[seen]: Parameters<SubscriberStore["removeSubscriber"]>): Promise<boolean> {
    await this.reach();
    this.checkHistory();
    return subscribers.removeSubscriber(this.state, seen);
  }

  async claimSubscribers(subscriberIds: readonly string[], instanceId: string) {
    await this.reach();
    this.checkHistory();
    return subscribers.claimSubscribers(this.state, { subscriberIds, instanceId }, this.now());
  }

  async writeDeliveries(...[progress, instanceId]: Parameters<SubscriberStore["writeDeliveries"]>) {
    await this.reach();
    this.checkHistory();
    return subscribers.writeDeliveries(this.state, { progress, instanceId }, this.now());
  }

  async ping(): Promise<void> {
    await this.reach();
  }

  /** A commit takes effect at one instant, so the policy document cannot change during it. */
  private followPolicy(): PolicyInForce {
    const { current } = this.knownPolicy;
    return current.stamp === this.state.policy.stamp
      ? current
      : this.knownPolicy.take(policies.policyInForce(this.state));
  }

  private get state(): DatabaseState {
    return this.database.state;
  }

  private now(): Date {
    return this.database.clock.now();
  }

  private async reach(): Promise<void> {
    await this.gate?.opened;
    await Promise.resolve();
    if (this.down) throw new StoreUnavailable("the database is away");
  }

  private checkHistory(): void {
    if (this.knownHistory !== this.state.history) throw new HistoryChanged("the database has another history");
  }
}
