import type { Finding } from "../../adapters/cli/diagnose.ts";
import type { OpenDatabase, RefusedDatabase } from "../../adapters/postgres/examine.ts";
import { ageInWords } from "../../domain/retention.ts";
import { isLoopback } from "../config/combinations.ts";
import type { Facts } from "./facts.ts";
import { counted, fine, mistake, warning } from "./findings.ts";

/** What a node opens at most: its pools, the session lock and the ear for hints. */
const CONNECTIONS_OF_A_NODE = 20;
const OLDEST_VERSION = 150_000;

export function judgeDatabase(facts: Facts): readonly Finding[] {
  const { database } = facts;
  if (database === null) return [];
  if (database.kind === "refused") return [judgeRefusal(database)];
  return [
    judgeServer(database),
    judgeRoom(database),
    judgePooler(database, facts),
    judgeSchema(database),
    judgeClock(database, facts),
    judgeRetention(facts),
    ...judgeNodes(database, facts),
  ].flatMap((finding) => finding ?? []);
}

const SILENCE = new Set(["ECONNREFUSED", "ENOTFOUND", "ETIMEDOUT", "EHOSTUNREACH", "ECONNRESET", "EAI_AGAIN", ""]);

const LOGIN = "correct user and password in FENCEPOST_DATABASE_URL, or pg_hba.conf on the server";

function judgeRefusal({ code, message }: RefusedDatabase): Finding {
  const says = `the database cannot be used: ${message}`;
  // Without a password in the URL the driver ends the talk by itself, and says so without a code.
  const isLogin = code === "28P01" || code === "28000" || (code === "" && /password/.test(message));
  if (isLogin) return mistake("DATABASE_LOGIN", says, LOGIN);
  if (SILENCE.has(code)) {
    return mistake(
      "DATABASE_UNREACHABLE",
      `the database does not answer: ${message}`,
      "start it, or correct host and port in FENCEPOST_DATABASE_URL",
    );
  }
  if (code === "3D000")
    return mistake("DATABASE_MISSING", says, "create it (createdb), or correct its name in FENCEPOST_DATABASE_URL");
  if (code === "53300") {
    return mistake("DATABASE_FULL", says, `raise max_connections: each node opens up to ${CONNECTIONS_OF_A_NODE}`);
  }
  if (code === "42501")
    return mistake("DATABASE_RIGHTS", says, "run fencepost migrate --grant ROLE as the schema's owner");
  return mistake("DATABASE", says, "see the server's log");
}

function judgeServer(database: OpenDatabase): Finding {
  const { version, standby, synchronousCommit, fsync, encoding } = database;
  const major = Math.floor(version / 10_000);
  if (standby)
    return mistake(
      "DATABASE_STANDBY",
      "the database is a read-only standby",
      "use the primary's address in FENCEPOST_DATABASE_URL",
    );
  if (version < OLDEST_VERSION) return mistake("DATABASE_VERSION", `PostgreSQL ${major} is too old`, "use 15 or newer");
  if (synchronousCommit === "off") {
    return mistake(
      "SYNCHRONOUS_COMMIT",
      "synchronous_commit is off: a crash would lose what was acknowledged",
      "set it to on for this role and database",
    );
  }
  if (!fsync)
    return mistake(
      "FSYNC",
      "fsync is off: a crash may lose or damage everything",
      "set fsync to on in postgresql.conf",
    );
  if (encoding !== "UTF8")
    return mistake("DATABASE_ENCODING", `the database is encoded in ${encoding}`, "create it with ENCODING 'UTF8'");
  return fine("DATABASE", `PostgreSQL ${major} answers, and waits for its disk before it acknowledges`);
}

function judgeRoom({ freeConnections, maxConnections }: OpenDatabase): Finding {
  const text = `${freeConnections} of ${maxConnections} connections are free`;
  if (freeConnections >= CONNECTIONS_OF_A_NODE) return fine("CONNECTIONS", text);
  return warning(
    "CONNECTIONS",
    text,
    `each node opens up to ${CONNECTIONS_OF_A_NODE}: raise max_connections, or close what others keep open`,
  );
}

function judgePooler({ pooled }: OpenDatabase, { hasDirectUrl }: Facts): Finding | null {
  if (!pooled) return null;
  if (hasDirectUrl) return fine("POOLER", "the database is behind a pooler, and a way past it is configured");
  return warning(
    "POOLER",
    "the database is behind a pooler: nodes hear no hints, and a crash is seen only when the lease is over",
    "set FENCEPOST_DIRECT_DATABASE_URL to the server itself",
  );
}

function judgeSchema({ schema, mayCreate, forbiddenTables }: OpenDatabase): Finding {
  const { applied, pending, problem } = schema;
  if (forbiddenTables.length > 0) {
    const [first] = forbiddenTables;
    const others = forbiddenTables.length > 1 ? ` and ${forbiddenTables.length - 1} other tables` : "";
    return mistake(
      "SCHEMA_RIGHTS",
      `this role may not use ${first}${others}`,
      "run fencepost migrate --grant ROLE as the schema's owner",
    );
  }
  if (problem !== null)
    return mistake("SCHEMA", problem, "run the version that the database was brought to, or a newer one");
  if (applied === 0 && !mayCreate) {
    return mistake(
      "SCHEMA_RIGHTS",
      "there is no schema yet, and this role may not create one",
      "GRANT CREATE ON DATABASE … TO this role, or run fencepost migrate as another one",
    );
  }
  if (applied === 0) return fine("SCHEMA", "there is no schema yet; start makes it");
  if (pending.length > 0)
    return warning(
      "SCHEMA",
      `${counted(pending.length, "migration")} pending, up to ${pending.at(-1)}`,
      "start applies them, or fencepost migrate now",
    );
  return fine("SCHEMA", "the schema is up to date");
}

function judgeClock({ clockAheadMs }: OpenDatabase, { clockSkewAllowanceMs }: Facts): Finding {
  const seconds = (Math.abs(clockAheadMs) / 1_000).toFixed(1);
  if (Math.abs(clockAheadMs) <= Math.max(clockSkewAllowanceMs, 1_000)) {
    return fine("DATABASE_CLOCK", "this machine's clock and the database's agree");
  }
  const text = `this machine's clock is ${seconds} s ${clockAheadMs > 0 ? "behind" : "ahead of"} the database's`;
  return warning("DATABASE_CLOCK", text, "let both follow NTP; leases go by the database's clock, logs by this one");
}

function judgeRetention({ retention }: Facts): Finding | null {
  if (retention === null) return null;
  const { ageMs, requestIdAgeMs } = retention;
  const kept = `transactions are kept for ${ageInWords(ageMs)} after they are final`;
  if (requestIdAgeMs === null) return fine("RETENTION", `${kept}, their request ids for ever`);
  const text = `${kept}, and ${ageInWords(requestIdAgeMs)} after that a repeat of a request id is sent and paid again`;
  return warning("RETENTION", text, "leave FENCEPOST_REQUEST_ID_RETENTION unset, unless no caller repeats so late");
}

function judgeNodes({ nodes }: OpenDatabase, { version, face }: Facts): readonly Finding[] {
  if (nodes.length === 0) return [];
  const old = nodes.find((node) => node.version !== version);
  const versions =
    old === undefined
      ? fine("NODES", `${counted(nodes.length, "node")} alive, of this version`)
      : warning(
          "NODE_VERSIONS",
          `${old.nodeId} runs version ${old.version}, this is ${version}`,
          "upgrade all nodes, one after the other: one release apart is the most that works",
        );
  const remote = nodes.find(({ url }) => url !== "" && !isLocal(url));
  if (remote === undefined || !isLocal(face.advertisedUrl)) return [versions];
  const text = `${remote.nodeId} is at ${remote.url}, and would look for this node at ${face.advertisedUrl}: its own machine`;
  const fix = "set FENCEPOST_HOST or FENCEPOST_ADVERTISE_URL to an address that other nodes reach";
  return [versions, mistake("ADVERTISED_URL", text, fix)];
}

function isLocal(url: string): boolean {
  return isLoopback(new URL(url).hostname);
}
