import type { Finding } from "../../adapters/cli/diagnose.ts";
import type { OpenDatabase, RefusedDatabase } from "../../adapters/postgres/schema/examine.ts";
import { ageInWords } from "../../domain/cluster/retention.ts";
import { CONNECTIONS_OF_A_NODE, type SetupCode } from "../../domain/troubles/setup.ts";
import { isLoopback } from "../config/combinations.ts";
import { counted, type Findings, fine, mistake, warning } from "./findings.ts";
import type { Facts } from "./gather.ts";

const OLDEST_VERSION = 150_000;

export function judgeDatabase(facts: Facts): Findings {
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
  ];
}

const SILENCE = new Set(["ECONNREFUSED", "ENOTFOUND", "ETIMEDOUT", "EHOSTUNREACH", "ECONNRESET", "EAI_AGAIN", ""]);

const REFUSALS: Readonly<Record<string, SetupCode>> = {
  "28P01": "DATABASE_LOGIN",
  "28000": "DATABASE_LOGIN",
  "3D000": "DATABASE_MISSING",
  "53300": "DATABASE_FULL",
  "42501": "DATABASE_RIGHTS",
};

function judgeRefusal({ code, message }: RefusedDatabase): Finding {
  // If the URL has no password, the driver closes the connection itself, and its error has no code.
  const isLogin = code === "" && /password/.test(message);
  if (SILENCE.has(code) && !isLogin) return mistake("DATABASE_UNREACHABLE", `the database does not answer: ${message}`);
  const refused = isLogin ? "DATABASE_LOGIN" : (REFUSALS[code] ?? "DATABASE");
  return mistake(refused, `the database cannot be used: ${message}`);
}

function judgeServer({ version, standby, synchronousCommit, fsync, encoding }: OpenDatabase): Finding {
  const major = Math.floor(version / 10_000);
  if (standby) return mistake("DATABASE_STANDBY", "the database is a read-only standby");
  if (version < OLDEST_VERSION) return mistake("DATABASE_VERSION", `PostgreSQL ${major} is too old`);
  if (synchronousCommit === "off")
    return mistake("SYNCHRONOUS_COMMIT", "synchronous_commit is off: a crash would lose what was acknowledged");
  if (!fsync) return mistake("FSYNC", "fsync is off: a crash may lose or damage everything");
  if (encoding !== "UTF8") return mistake("DATABASE_ENCODING", `the database's encoding is ${encoding}, not UTF8`);
  return fine("DATABASE", `PostgreSQL ${major} answers, and waits for its disk before it acknowledges`);
}

function judgeRoom({ freeConnections, maxConnections }: OpenDatabase): Finding {
  const judged = freeConnections >= CONNECTIONS_OF_A_NODE ? fine : warning;
  return judged("CONNECTIONS", `${freeConnections} of ${maxConnections} connections are free`);
}

function judgePooler({ pooled }: OpenDatabase, { hasDirectUrl }: Facts): Finding | null {
  if (!pooled) return null;
  if (hasDirectUrl) return fine("POOLER", "the database is behind a pooler, and a way past it is configured");
  const lacks = "nodes get no notifications, and a crash is seen only when the lease is over";
  return warning("POOLER", `the database is behind a pooler: ${lacks}`);
}

function judgeSchema({ schema: { applied, pending, problem }, mayCreate, forbiddenTables }: OpenDatabase): Finding {
  const [first, ...others] = forbiddenTables;
  const more = others.length === 0 ? "" : ` and ${others.length} other tables`;
  if (first !== undefined) return mistake("SCHEMA_RIGHTS", `this database role may not use the table ${first}${more}`);
  if (problem !== null) return mistake("SCHEMA", problem);
  if (applied === 0 && !mayCreate)
    return mistake("SCHEMA_RIGHTS", "there is no schema yet, and this role may not create one");
  if (applied === 0) return fine("SCHEMA", "there is no schema yet; start makes it");
  const last = pending.at(-1);
  if (last === undefined) return fine("SCHEMA", "the schema is up to date");
  return warning("MIGRATIONS", `${counted(pending.length, "migration")} pending, up to ${last}`);
}

function judgeClock({ clockAheadMs }: OpenDatabase, { clockSkewAllowanceMs }: Facts): Finding {
  if (Math.abs(clockAheadMs) <= Math.max(clockSkewAllowanceMs, 1_000))
    return fine("DATABASE_CLOCK", "this machine's clock and the database's agree");
  const seconds = (Math.abs(clockAheadMs) / 1_000).toFixed(1);
  const side = clockAheadMs > 0 ? "behind" : "ahead of";
  return warning("DATABASE_CLOCK", `this machine's clock is ${seconds} s ${side} the database's`);
}

function judgeRetention({ retention }: Facts): Finding | null {
  if (retention === null) return null;
  const { ageMs, requestIdAgeMs } = retention;
  const kept = `transactions are kept for ${ageInWords(ageMs)} after they are final`;
  if (requestIdAgeMs === null) return fine("RETENTION", `${kept}, their request ids for ever`);
  const late = `${ageInWords(requestIdAgeMs)} after that a repeat of a request id is sent and paid again`;
  return warning("RETENTION", `${kept}, and ${late}`);
}

function judgeNodes({ nodes }: OpenDatabase, { version, face }: Facts): Findings {
  if (nodes.length === 0) return [];
  const old = nodes.find((node) => node.version !== version);
  const versions =
    old === undefined
      ? fine("NODES", `${counted(nodes.length, "node")} alive, of this version`)
      : warning("NODE_VERSIONS", `${old.nodeId} runs version ${old.version}, this is ${version}`);
  const remote = nodes.find(({ url }) => url !== "" && !isLocal(url));
  if (remote === undefined || !isLocal(face.advertisedUrl)) return [versions];
  const text = `${remote.nodeId} is at ${remote.url}, and would look for this node at ${face.advertisedUrl}: its own machine`;
  return [versions, mistake("ADVERTISED_URL", text)];
}

function isLocal(url: string) {
  return isLoopback(new URL(url).hostname);
}
