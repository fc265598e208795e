import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTransaction } from "../../../src/adapters/postgres/statements/session.ts";
import { everyStatement, type NamedStatement } from "./every-statement.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
let client: Client;
let statements: readonly NamedStatement[];

beforeAll(async () => {
  subject = await createPostgresSubject();
  client = subject.client;
  statements = await everyStatement();
});
afterAll(() => subject.close());

/**
 * Returns the query plan that a statement gets in a store's transaction: a generic plan (unknown parameters), with the
 * planner settings of the transaction's first statement.
 */
async function planOf(name: string): Promise<string> {
  const found = statements.find(({ statement }) => statement.name === `fencepost:${name}`);
  if (found === undefined) throw new Error(`there is no statement ${name}`);
  await client.query("BEGIN");
  try {
    await client.query(openTransaction.sql, ["0", "0", "0", "fencepost.transaction_timeout", "0"]);
    await client.query(`PREPARE planned AS ${found.statement.sql}`);
    const { rows: types } = await client.query<{ count: number }>(
      "SELECT cardinality(parameter_types) AS count FROM pg_prepared_statements WHERE name = 'planned'",
    );
    const nulls = Array.from({ length: types[0]?.count ?? 0 }, () => "NULL").join(", ");
    const { rows } = await client.query(`EXPLAIN EXECUTE planned${nulls === "" ? "" : `(${nulls})`}`);
    return rows.map((row) => row["QUERY PLAN"]).join("\n");
  } finally {
    await client.query("ROLLBACK");
    await client.query("DEALLOCATE ALL");
  }
}

describe("the SQL statements of the program", () => {
  it("are planned under the same planner settings in read and write transactions", async () => {
    const switches = (name: string) => {
      const sql = statements.find(({ statement }) => statement.name === `fencepost:${name}`)?.statement.sql ?? "";
      return [...sql.matchAll(/set_config\('(enable_\w+|plan_cache_mode|jit|DateStyle)', '(\w+)'/g)].map(
        ([, key, value]) => `${key}=${value}`,
      );
    };
    expect(switches("open-read")).toEqual(switches("open-transaction"));
    expect(switches("open-read")).toContain("enable_seqscan=off");
  });

  it("are constants that are each prepared under their own name", () => {
    const dashed = (constant: string) => constant.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    for (const { constant, statement } of statements) expect(statement.name).toBe(`fencepost:${dashed(constant)}`);
    expect(new Set(statements.map(({ statement }) => statement.name)).size).toBe(statements.length);
    expect(statements.length).toBeGreaterThan(50);
  });

  it("can all be prepared by PostgreSQL", async () => {
    for (const { statement } of statements) {
      const error = await client.query(`PREPARE "${statement.name}" AS ${statement.sql}`).then(
        () => null,
        (reason: Error) => reason.message,
      );
      expect({ name: statement.name, error }).toEqual({ name: statement.name, error: null });
    }
    await client.query("DEALLOCATE ALL");
  });

  it("name every table with its schema, and need no search_path", async () => {
    await client.query("SET search_path = ''");
    for (const { statement } of statements) await client.query(`PREPARE "${statement.name}" AS ${statement.sql}`);
    await client.query("DEALLOCATE ALL");
    await client.query("RESET search_path");
  });
});

/**
 * Statements that by design read every lane, every instance or every unfinished row, or that scan a small index or a
 * few of the newest rows. They run rarely, for people who read an overview. Their cost on a large table is measured in
 * reads.test.ts and sights.test.ts.
 */
const SURVEYS = [
  "bound-notices",
  "count-troubles",
  "declare-dead",
  "end-instances",
  "end-kills",
  "end-terms",
  "find-requeued",
  "forget-notices",
  "insert-subscriber",
  "list-abandoned-lanes",
  "list-awaiting",
  "list-ended-reports",
  "list-held",
  "list-instances",
  "list-missing-locks",
  "list-lanes",
  "list-holes",
  "list-leases",
  "list-notices",
  "list-open-notices",
  "list-past-databases",
  "list-past-instances",
  "list-reports",
  "list-subscribers",
  "list-takeovers",
  "list-troubled-lanes",
  "list-unowned-lanes",
  "lock-lanes-of-instance",
  "page-transactions",
  "prove-continuity",
  "purge-commit-markers",
  "purge-instances",
  "purge-reports",
  "purge-takeovers",
  "read-api-keys",
  "read-census",
  "read-database-history",
  "read-kills",
  "read-pulse",
  "record-epoch-floors",
  "release-lanes",
  "remember-position",
  "sum-lanes",
];
/**
 * Statements for which a nested loop is right: one side has one row, or there is one index look-up per lane or request.
 */
const LOOPS = [
  "append-completions",
  "delete-transactions",
  "find-action-keys",
  "find-fixed-nonces",
  "find-lanes-with-old-signatures",
  "find-old-lanes",
  "find-pooled",
  "find-requests",
  "find-signatures",
  "find-spent",
  "find-unwatchable",
  "insert-api-secret",
  "keep-requests",
  "prove-unspent",
  "read-old-rows",
  "read-old-signatures",
  "read-oldest-open",
  "read-queues",
  "search-hash",
  "search-nonce",
];
/**
 * Statements whose pages are merged from one index scan per chain. Their cost on a large table is measured in
 * reads.test.ts.
 */
const PAGES = /^page-(final|live|intake)/;

describe.each(["never analysed", "analysed while empty"])("query plans on tables that were %s", (when) => {
  beforeAll(async () => {
    if (when === "analysed while empty") await client.query("ANALYZE");
  });

  it("never contain a nested loop or a sequential scan", async () => {
    for (const { statement } of statements) {
      const name = statement.name.replace("fencepost:", "");
      if (SURVEYS.includes(name)) continue;
      const plan = await planOf(name);
      expect({ name, plan }).toEqual({ name, plan: expect.not.stringMatching(/Seq Scan on/) });
      if (LOOPS.includes(name) || PAGES.test(name)) continue;
      expect({ name, plan }).toEqual({ name, plan: expect.not.stringMatching(/Nested Loop/) });
    }
  });

  it("read a page from an index that has the page's order", async () => {
    const lists = ["list-signatures", "list-signatures-in-state", "list-signatures-of-key"];
    for (const name of ["page-transactions", "read-completions", "read-confirmations", ...lists]) {
      expect({ name, plan: await planOf(name) }).toEqual({ name, plan: expect.not.stringMatching(/Sort/) });
    }
  });

  // protects [Reads] src/adapters/postgres/statements/lane.ts
  it("count a lane's unsigned transactions without reading finished transactions", async () => {
    expect(await planOf("read-lane")).toMatch(/Index Scan using transaction_live on transaction/);
  });

  // protects [Reads] src/adapters/postgres/statements/signature.ts, src/adapters/postgres/migrations/0041_signature_lists.sql
  it("list the signatures in one state from its own part of an index, and find old decisions by their time", async () => {
    const conditions =
      /signature_by_state on signature.*\n\s+Index Cond: \(\(state = \$5\) AND \(signature_id < \$1\)\)/;
    expect(await planOf("list-signatures-in-state")).toMatch(conditions);
    expect(await planOf("forget-decisions")).toMatch(/using subscriber_decision_by_time on subscriber_decision/);
  });

  it("find rows by key, without walking a whole index", async () => {
    for (const { statement } of statements) {
      const name = statement.name.replace("fencepost:", "");
      if (SURVEYS.includes(name) || PAGES.test(name)) continue;
      const lines = (await planOf(name)).split("\n");
      const walks = lines.filter((line, index) => {
        const scans = /Index (Only )?Scan (Backward )?using \w+ on (?!node_instance|feed)/.test(line);
        return scans && !/Index Cond/.test(lines[index + 1] ?? "");
      });
      expect({ name, walks }).toEqual({ name, walks: [] });
    }
  });
});
