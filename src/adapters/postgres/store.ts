import { isSpent } from "../../domain/ledger/index.ts";
import type { PolicyWords } from "../../domain/policy/place.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ports } from "../../ports/ports.ts";
import type { RetentionStore } from "../../ports/retention-store.ts";
import { type CommitRuntime, commitWrites } from "./commit/commit.ts";
import { PolicyBook } from "./commit/policies.ts";
import { rehearse } from "./commit/rehearse.ts";
import { RememberedLanes } from "./commit/remembered-lanes.ts";
import { DEFAULT_SCHEMA } from "./rows/schema-name.ts";
import { newestMigration } from "./schema/migrate.ts";
import { CommitSlots } from "./session/commit-slots.ts";
import { ask, Connections, type SessionOptions } from "./session/connections.ts";
import { type DurableRuntime, settleDoubts } from "./session/durably.ts";
import { KnownHistory } from "./session/known-history.ts";
import { hasTransactionTimeout, limitsFor } from "./session/limits.ts";
import { inspectServer, type ServerRow } from "./statements/session.ts";
import { findRequeued } from "./statements/transaction.ts";
import { abisIn } from "./stores/abis.ts";
import { keysIn } from "./stores/api-keys.ts";
import { noticesIn } from "./stores/kept-notices.ts";
import { killsIn } from "./stores/kills.ts";
import { leasesIn } from "./stores/leases.ts";
import { leftRequestsIn } from "./stores/left-requests.ts";
import { loadsFrom } from "./stores/loads.ts";
import { oldRowsIn } from "./stores/old-rows.ts";
import { queriesFrom } from "./stores/queries.ts";
import { registerInstance } from "./stores/register-instance.ts";
import { sightsFrom } from "./stores/sights.ts";
import { subscribersIn } from "./stores/subscribers.ts";
import { takeoversIn } from "./stores/takeovers.ts";

/**
 * Use of named prepared statements, which a transaction pooler may not support (PgBouncer before 1.21). "auto": only if
 * there is no pooler.
 */
export type PreparedStatements = "auto" | "on" | "off";

export interface PostgresStoreOptions {
  readonly databaseUrl: string;
  /** Name of the schema; default: `fencepost`. */
  readonly schema?: string;
  readonly clock: Clock;
  /** Duration of a lease. Every transaction ends within a third of it. */
  readonly leaseDurationMs: number;
  /** Number of connections for reading. Writing and the lease have a few separate ones. */
  readonly poolSize?: number;
  readonly preparedStatements?: PreparedStatements;
  /**
   * Codec that parses addresses and functions in the policy document. If absent, a document that contains addresses or
   * functions cannot be read.
   */
  readonly policyWords?: PolicyWords;
}

/**
 * Error: the server, or the content of its database, is not safe to store nonces in. The message is one line and states
 * what to change.
 */
export class UnsuitableServer extends Error {
  override readonly name = "UnsuitableServer";
}

const OLDEST_VERSION = 150_000;
const READING = 8;
/** Number of transactions that the committer has in flight. */
const AT_ONCE = 3;
/** Number of writing connections: two more than there are commits, for looking up the outcome of a commit. */
const WRITING = AT_ONCE + 2;
const LEASING = 3;
/**
 * Number of connections for renewals and registrations, which must never queue behind other work: one to use, and one
 * to look up the outcome of a commit.
 */
const RENEWING = 2;

const cannotRead = (): never => {
  throw new Error("cannot be parsed: this store has no parser for policies");
};
const NO_WORDS: PolicyWords = { parseAddress: cannotRead, functions: cannotRead };

export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { databaseUrl, clock, leaseDurationMs, preparedStatements = "auto", poolSize = READING } = options;
  const { schema = DEFAULT_SCHEMA, policyWords = NO_WORDS } = options;
  const deadlineMs = Math.max(1_000, Math.floor(leaseDurationMs / 2));
  const pool = (max: number, session: SessionOptions) =>
    new Connections({ databaseUrl, clock, max, deadlineMs, ...session });
  const first = pool(1, { preparedStatements: false, hasTransactionTimeout: false, schema });
  const { server, pooled } = await inspect(first).finally(() => first.close());
  const session = {
    preparedStatements: preparedStatements === "on" || (preparedStatements === "auto" && !pooled),
    hasTransactionTimeout: hasTransactionTimeout(server.version),
    schema,
  };
  const history = new KnownHistory();
  const { systemIdentifier, timeline, walPosition } = server;
  history.begin({ systemIdentifier, timeline, walPosition });
  const limits = limitsFor(leaseDurationMs, server.version);
  const slots = new CommitSlots(server.storeId);
  const shared = { clock, history, limits, slots, serverVersion: server.version, patienceMs: deadlineMs };
  const reading = pool(poolSize, session);
  const policy = new PolicyBook(reading, policyWords);
  return storeOf({
    reading,
    writing: { ...shared, connections: pool(WRITING, session), lanes: new RememberedLanes(), policy },
    leasing: { ...shared, connections: pool(LEASING, session) },
    renewing: { ...shared, connections: pool(RENEWING, session) },
    newestMigration: await newestMigration(),
  });
}

async function inspect(connections: Connections): Promise<{ readonly server: ServerRow; readonly pooled: boolean }> {
  const [server] = await ask(connections, inspectServer());
  if (server === undefined) throw new UnsuitableServer("the database server says nothing about itself");
  if (server.standby) throw new UnsuitableServer("the database is a read-only standby: use the primary's address");
  if (server.version < OLDEST_VERSION) {
    throw new UnsuitableServer(`PostgreSQL ${Math.floor(server.version / 10_000)} is too old: use 15 or newer`);
  }
  if (server.synchronousCommit === "off") {
    throw new UnsuitableServer("synchronous_commit is off: a crash would lose acknowledged requests; switch it on");
  }
  if (server.encoding !== "UTF8") {
    throw new UnsuitableServer(`the database is encoded in ${server.encoding}: create it with ENCODING 'UTF8'`);
  }
  await refuseRequeued(connections);
  return { server, pooled: await connections.arePooled() };
}

const MOST_LISTED = 20;

/**
 * Refuses to start if an open transaction may have attempts at two nonces: a payload could be sent, or an outcome
 * decided, at the wrong nonce.
 */
async function refuseRequeued(connections: Connections) {
  const rows = await ask(connections, findRequeued());
  if (rows.length === 0) return;
  const named = rows.map(
    ({ txId, nonce, signer, chainId }) => `${txId} (nonce ${nonce} of ${signer} on chain ${chainId})`,
  );
  const list = [...named.slice(0, MOST_LISTED), ...(named.length > MOST_LISTED ? ["…"] : [])].join(", ");
  const what = `${rows.length} open transactions were moved to a second nonce by an older version`;
  throw new UnsuitableServer(`${what}: ${list}; end them with that version first (docs/external-use.md)`);
}

interface Parts {
  readonly reading: Connections;
  readonly writing: CommitRuntime;
  readonly leasing: DurableRuntime;
  readonly renewing: DurableRuntime;
  readonly newestMigration: string;
}

export type PostgresStore = Ports["store"] &
  RetentionStore & {
    /** Opens the connections of commits and prepares their statements; writes nothing. */
    rehearse(): Promise<void>;
    close(): Promise<void>;
  };

function storeOf({ reading, writing, leasing, renewing, newestMigration }: Parts): PostgresStore {
  const { policy } = writing;
  const loads = loadsFrom(reading, policy);
  const queries = queriesFrom(reading, policy);
  /**
   * The highest position of the feed that this process has returned to a caller. If the database's counter is lower,
   * commits were lost.
   */
  let seen = { epoch: 0, seq: 0 };
  return {
    ...loads,
    ...leasesIn(leasing, renewing),
    ...takeoversIn(leasing),
    ...keysIn(leasing),
    ...queries,
    ...sightsFrom(reading, leasing, { ...leasing, connections: reading }),
    ...abisIn(reading, leasing),
    ...killsIn(leasing),
    ...noticesIn(reading, leasing),
    ...subscribersIn(reading, leasing, { ...leasing, connections: reading }),
    ...leftRequestsIn(reading, leasing),
    ...oldRowsIn(reading, leasing),
    knownPolicy: policy,
    readPolicy: () => policy.read(),
    changePolicy: (change) => policy.change(leasing, change),
    commit: async (writes) => (writes.length === 0 ? { outcomes: [], changes: [] } : commitWrites(writing, writes)),
    loadLane: async (fence) => {
      // Before a lane is loaded, wait until the outcome of every earlier commit of this process is known: a lane loaded
      // too early would lack the changes of such a commit.
      await settleDoubts(leasing);
      return loads.loadLane(fence);
    },
    registerInstance: (registration) => registerInstance(renewing, registration, { seen, newestMigration }),
    transactionByRequest: async (lane, requestId) => {
      const [existing] = await loads.findByRequestIds([{ lane, requestIds: [requestId] }]);
      return existing === undefined || isSpent(existing) ? null : queries.transaction(existing.txId);
    },
    feed: async (after, limit) => {
      const page = await queries.feed(after, limit);
      seen = { epoch: Math.max(seen.epoch, page.epoch), seq: Math.max(seen.seq, page.lastSeq) };
      return page;
    },
    rehearse: () => rehearse(writing, AT_ONCE),
    close: async () => {
      const all = [reading, ...[writing, leasing, renewing].map(({ connections }) => connections)];
      await Promise.all(all.map((connections) => connections.close()));
    },
  };
}
