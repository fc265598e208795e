/** The PostgreSQL adapter: opens the store that the application writes to and reads from. */
import type { Address, Fence, Hash, Hex, Lane } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AskedRequests, LaneStore, LaneWrite, WriteOutcome } from "../../ports/lane-store.ts";
import type {
  Acquisition,
  Announcement,
  DeathEvidence,
  InstanceRegistration,
  LeaseStore,
  LockTold,
  Registered,
} from "../../ports/lease-store.ts";
import type { FeedPage, ListFilter, QueryStore } from "../../ports/query-store.ts";
import type { HeldLock } from "../../ports/session-lock.ts";
import { type CommitRuntime, commitWrites } from "./commit/commit.ts";
import { RememberedLanes } from "./commit/remembered-lanes.ts";
import { Leases, readInstances, readLeases, readSecret, readSignersOf } from "./leases.ts";
import { Loads } from "./loads.ts";
import { newestMigration } from "./migrate.ts";
import { Queries } from "./queries.ts";
import { registerInstance } from "./register-instance.ts";
import { CommitSlots } from "./session/commit-slots.ts";
import { Connections, type SessionOptions } from "./session/connections.ts";
import type { DurableRuntime } from "./session/durably.ts";
import { KnownHistory } from "./session/known-history.ts";
import { hasTransactionTimeout, limitsFor } from "./session/limits.ts";
import { settleDoubts } from "./session/resolve-commit.ts";
import { inspectServer, ping, type ServerRow } from "./statements/session.ts";
import { Takeovers } from "./takeovers.ts";

/** Named statements, which a transaction pooler may not keep (PgBouncer before 1.21). "auto": not behind any pooler. */
export type PreparedStatements = "auto" | "on" | "off";

export interface PostgresStoreOptions {
  readonly databaseUrl: string;
  readonly clock: Clock;
  /** Every transaction is over within a third of it. */
  readonly leaseDurationMs: number;
  /** Connections for reading; writing and the lease have a few of their own. */
  readonly poolSize?: number;
  readonly preparedStatements?: PreparedStatements;
}

/** The server is not one that may be entrusted with nonces. One line, with what to change. */
export class UnsuitableServer extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UnsuitableServer";
  }
}

const OLDEST_VERSION = 150_000;
const READING = 8;
/** The committer has two transactions in flight; the others are for looking up what became of one. */
const WRITING = 4;
const LEASING = 3;
/** Renewals and registrations never queue behind anything else; one to use, one to look up what became of a commit. */
const RENEWING = 2;

export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { databaseUrl, clock, leaseDurationMs, preparedStatements = "auto", poolSize = READING } = options;
  const deadlineMs = Math.max(1_000, Math.floor(leaseDurationMs / 2));
  const pool = (max: number, session: SessionOptions) =>
    new Connections({ databaseUrl, clock, max, deadlineMs, ...session });
  const first = pool(1, { preparedStatements: false, hasTransactionTimeout: false });
  const { server, pooled } = await inspect(first).finally(() => first.close());
  const session = {
    preparedStatements: preparedStatements === "on" || (preparedStatements === "auto" && !pooled),
    hasTransactionTimeout: hasTransactionTimeout(server.version),
  };
  const history = new KnownHistory();
  history.begin({
    systemIdentifier: server.system_identifier,
    timeline: server.timeline,
    walPosition: server.wal_position,
  });
  const limits = limitsFor(leaseDurationMs, server.version);
  const slots = new CommitSlots(server.store_id);
  const shared = { clock, history, limits, slots, serverVersion: server.version, patienceMs: deadlineMs };
  return new PostgresStore({
    reading: pool(poolSize, session),
    writing: { ...shared, connections: pool(WRITING, session), lanes: new RememberedLanes() },
    leasing: { ...shared, connections: pool(LEASING, session) },
    renewing: { ...shared, connections: pool(RENEWING, session) },
    newestMigration: await newestMigration(),
  });
}

async function inspect(connections: Connections): Promise<{ readonly server: ServerRow; readonly pooled: boolean }> {
  const [server] = await connections.read((run) => run(inspectServer, []));
  if (server === undefined) throw new UnsuitableServer("the database server says nothing about itself");
  if (server.standby) throw new UnsuitableServer("the database is a read-only standby: use the primary's address");
  if (server.version < OLDEST_VERSION) {
    throw new UnsuitableServer(`PostgreSQL ${Math.floor(server.version / 10_000)} is too old: use 15 or newer`);
  }
  if (server.synchronous_commit === "off") {
    throw new UnsuitableServer("synchronous_commit is off: a crash would lose acknowledged requests; switch it on");
  }
  if (server.encoding !== "UTF8") {
    throw new UnsuitableServer(`the database is encoded in ${server.encoding}: create it with ENCODING 'UTF8'`);
  }
  return { server, pooled: await connections.arePooled() };
}

interface Parts {
  readonly reading: Connections;
  readonly writing: CommitRuntime;
  readonly leasing: DurableRuntime;
  readonly renewing: DurableRuntime;
  readonly newestMigration: string;
}

export class PostgresStore implements LeaseStore, LaneStore, QueryStore {
  private readonly parts: Parts;
  private readonly held: Leases;
  private readonly takeovers: Takeovers;
  private readonly loads: Loads;
  private readonly queries: Queries;
  /** The highest of the feed that this process has shown a caller: a counter below it has lost commits. */
  private seen = { epoch: 0, seq: 0 };

  constructor(parts: Parts) {
    this.parts = parts;
    this.held = new Leases(parts.leasing, parts.renewing);
    this.takeovers = new Takeovers(parts.leasing);
    this.loads = new Loads(parts.reading);
    this.queries = new Queries(parts.reading);
  }

  async close(): Promise<void> {
    const { reading, writing, leasing, renewing } = this.parts;
    const all = [reading, ...[writing, leasing, renewing].map(({ connections }) => connections)];
    await Promise.all(all.map((connections) => connections.close()));
  }

  // LaneStore
  async commit(writes: readonly LaneWrite[]): Promise<readonly WriteOutcome[]> {
    return writes.length === 0 ? [] : commitWrites(this.parts.writing, writes);
  }

  /** Not before every earlier commit of this process is over: one that came late would be missing in memory. */
  async loadLane(fence: Fence) {
    await settleDoubts(this.parts.leasing);
    return this.loads.lane(fence);
  }

  loadAllocated(lane: Lane, fromNonce: number, limit: number) {
    return this.loads.allocated(lane, fromNonce, limit);
  }

  loadPayloads(txIds: readonly string[]) {
    return this.loads.payloads(txIds);
  }

  settledBelow(lane: Lane): Promise<number> {
    return this.loads.settledBelow(lane);
  }

  loadRawTransactions(keys: readonly { readonly txId: string; readonly ordinal: number }[]): Promise<readonly Hex[]> {
    return this.loads.rawTransactions(keys);
  }

  loadWatched(lane: Lane, blockHashes: readonly Hash[]) {
    return this.loads.watched(lane, blockHashes);
  }

  findByRequestIds(asked: readonly AskedRequests[]) {
    return this.loads.byRequestIds(asked);
  }

  hasIntake() {
    return this.loads.hasIntake();
  }

  loadIntake(lanes: readonly Lane[], limit: number) {
    return this.loads.intake(lanes, limit);
  }

  // LeaseStore
  registerInstance(registration: InstanceRegistration): Promise<Registered> {
    const { newestMigration } = this.parts;
    return registerInstance(this.parts.renewing, registration, { seen: this.seen, newestMigration });
  }

  renewInstance(instanceId: string, leaseDurationMs: number): Promise<boolean> {
    return this.held.renew(instanceId, leaseDurationMs);
  }

  announce(instanceId: string, announcement: Announcement): Promise<void> {
    return this.held.announce(instanceId, announcement);
  }

  tellLock(instanceId: string, lock: HeldLock | null): Promise<LockTold> {
    return this.held.tellLock(instanceId, lock);
  }

  signersOf(instanceId: string): Promise<readonly Address[]> {
    return readSignersOf(this.parts.leasing.connections, instanceId);
  }

  clusterSecret(): Promise<string> {
    return readSecret(this.parts.leasing.connections);
  }

  instances() {
    return readInstances(this.parts.leasing.connections);
  }

  declareDead(instanceId: string, counter: number, evidence: DeathEvidence): Promise<boolean> {
    return this.held.declareDead({ instanceId, counter, evidence });
  }

  retireInstance(instanceId: string): Promise<number> {
    return this.held.retire(instanceId);
  }

  acquireLane(lane: Lane, instanceId: string): Promise<Acquisition> {
    return this.takeovers.acquire(lane, instanceId);
  }

  claimLanes(lanes: readonly Lane[], instanceId: string, limit: number) {
    return this.takeovers.claim(lanes, instanceId, limit);
  }

  releaseLane(fence: Fence): Promise<boolean> {
    return this.held.release(fence);
  }

  leases() {
    return readLeases(this.parts.leasing.connections);
  }

  // QueryStore
  transaction(txId: string) {
    return this.queries.transaction(txId);
  }

  async transactionByRequest(lane: Lane, requestId: string) {
    const [existing] = await this.loads.byRequestIds([{ lane, requestIds: [requestId] }]);
    return existing === undefined ? null : this.queries.transaction(existing.txId);
  }

  transactionAt(lane: Lane, nonce: number) {
    return this.queries.transactionAt(lane, nonce);
  }

  transactions(filter: ListFilter) {
    return this.queries.transactions(filter);
  }

  history(txId: string) {
    return this.queries.history(txId);
  }

  reservation(reservationId: string) {
    return this.queries.reservation(reservationId);
  }

  confirmations(chainId: number, aboveBlock: number, limit: number) {
    return this.queries.confirmations(chainId, aboveBlock, limit);
  }

  async feed(after: number, limit: number): Promise<FeedPage> {
    const page = await this.queries.feed(after, limit);
    this.note(page.epoch, page.lastSeq);
    return page;
  }

  laneDecisions(lane: Lane, limit: number) {
    return this.queries.laneDecisions(lane, limit);
  }

  lanes(signer: Address) {
    return this.queries.lanes(signer);
  }

  lanesAfter(after: Lane | null, limit: number) {
    return this.queries.lanesAfter(after, limit);
  }

  liveStates() {
    return this.queries.liveStates();
  }

  async ping(): Promise<void> {
    await this.parts.reading.read((run) => run(ping, []));
  }

  private note(epoch: number, seq: number): void {
    this.seen = { epoch: Math.max(this.seen.epoch, epoch), seq: Math.max(this.seen.seq, seq) };
  }
}
