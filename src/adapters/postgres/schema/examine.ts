/** Reads facts about a database for `fencepost doctor`. Nothing is written here; `doctor` draws the conclusions. */
import pg from "pg";
import type { Clock } from "../../../ports/clock.ts";
import { speakingIn } from "../rows/schema-name.ts";
import { readLowest } from "../statements/old-row.ts";
import { type SchemaState, schemaState } from "./migrate.ts";
import { SERVED_CHAINS } from "./served-chains.ts";

export interface RefusedDatabase {
  readonly kind: "refused";
  /** Error code of Node.js or PostgreSQL; empty if there is none. */
  readonly code: string;
  readonly message: string;
}

export interface OpenDatabase {
  readonly kind: "open";
  /** The server's `server_version_num`. */
  readonly version: number;
  readonly standby: boolean;
  readonly synchronousCommit: string;
  readonly fsync: boolean;
  readonly encoding: string;
  /** True if there is a connection pooler between this process and the server, in any mode. */
  readonly pooled: boolean;
  readonly maxConnections: number;
  readonly freeConnections: number;
  /** The database's clock minus this machine's, in milliseconds. */
  readonly clockAheadMs: number;
  readonly schema: SchemaState;
  /** True if the role may create the schema if it is missing. */
  readonly mayCreate: boolean;
  /** Names of the schema's tables that this role cannot read, or cannot write. */
  readonly forbiddenTables: readonly string[];
  readonly nodes: readonly RunningNode[];
  /** Time of the oldest outcome in the feed; null if there is none. */
  readonly oldestOutcomeAt: Date | null;
  /** Ids of the chains that nodes have served with this database. */
  readonly servedChains: readonly number[];
}

export interface RunningNode {
  readonly nodeId: string;
  readonly url: string;
  readonly version: string;
}

export type DatabaseFacts = RefusedDatabase | OpenDatabase;

export interface ExamineOptions {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly clock: Pick<Clock, "now">;
}

const CONNECT_TIMEOUT_MS = 5_000;

const SERVER = `
  SELECT
    current_setting('server_version_num')::integer AS version,
    pg_is_in_recovery() AS standby,
    current_setting('synchronous_commit') AS "synchronousCommit",
    current_setting('fsync') = 'on' AS fsync,
    current_setting('server_encoding') AS encoding,
    current_setting('max_connections')::integer AS "maxConnections",
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
      - (SELECT count(*)::integer FROM pg_stat_activity WHERE backend_type = 'client backend') AS "freeConnections",
    has_database_privilege(current_database(), 'CREATE') AS "mayCreate",
    pg_backend_pid() AS pid,
    extract(epoch FROM clock_timestamp()) * 1000 AS "nowMs"`;

const FORBIDDEN_TABLES = `
  SELECT c.relname AS name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = 'fencepost' AND c.relkind IN ('r', 'p') AND NOT (
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    AND (has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE')))
  ORDER BY 1`;

const NODES = `
  SELECT node_id AS "nodeId", url, version FROM fencepost.node_instance
  WHERE NOT dead AND expires_at > clock_timestamp() ORDER BY node_id`;

interface ServerAnswer
  extends Omit<
    OpenDatabase,
    "kind" | "pooled" | "clockAheadMs" | "schema" | "forbiddenTables" | "nodes" | "servedChains" | "oldestOutcomeAt"
  > {
  readonly pid: number;
  readonly nowMs: string;
}

export async function examineDatabase({ databaseUrl, schema, clock }: ExamineOptions): Promise<DatabaseFacts> {
  const client = speakingIn(
    new pg.Client({
      connectionString: databaseUrl,
      application_name: "fencepost doctor",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    }),
    schema,
  );
  // Listen for errors of the connection: without a listener, a broken connection would end the process. The query
  // itself rejects anyway.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await examine(client, { databaseUrl, schema, clock });
  } catch (error) {
    return refusal(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function examine(client: pg.Client, { databaseUrl, schema, clock }: ExamineOptions): Promise<OpenDatabase> {
  const askedMs = clock.now().getTime();
  const { rows } = await client.query<ServerAnswer>(SERVER);
  const answeredMs = clock.now().getTime();
  const { pid, nowMs, ...server } = rows[0] as ServerAnswer;
  const forbidden = await client.query<{ readonly name: string }>(FORBIDDEN_TABLES);
  const forbiddenTables = forbidden.rows.map(({ name }) => name);
  const state = forbiddenTables.length > 0 ? UNREADABLE : await schemaState({ databaseUrl, schema });
  const hasNodes = state.applied > 0;
  const isCurrent = hasNodes && state.pending.length === 0;
  return {
    kind: "open",
    ...server,
    // A pooler reports its own process id, which differs from the server's.
    pooled: pid !== (client as pg.Client & { readonly processID: number | null }).processID,
    clockAheadMs: Number(nowMs) - (askedMs + answeredMs) / 2,
    schema: state,
    forbiddenTables,
    nodes: hasNodes ? (await client.query<RunningNode>(NODES)).rows : [],
    servedChains: isCurrent ? await servedChains(client) : [],
    oldestOutcomeAt: isCurrent ? await oldestOutcomeAt(client) : null,
  };
}

async function oldestOutcomeAt(client: pg.Client): Promise<Date | null> {
  const [lowest] = (await client.query<{ readonly at: Date }>(readLowest.sql, [1])).rows;
  return lowest?.at ?? null;
}

async function servedChains(client: pg.Client): Promise<readonly number[]> {
  return (await client.query<{ readonly chainId: number }>(SERVED_CHAINS)).rows.map(({ chainId }) => chainId);
}

const UNREADABLE: SchemaState = { applied: 0, pending: [], problem: null };

function refusal(error: unknown): RefusedDatabase {
  // A connection that tried several addresses fails with an AggregateError whose own message is empty.
  const cause: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return { kind: "refused", code, message: cause instanceof Error ? cause.message : String(cause) };
}
