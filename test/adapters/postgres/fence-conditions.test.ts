import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTransaction } from "../../../src/adapters/postgres/statements/session.ts";
import { type Mutant, mutantsOf } from "../../support/sql-mutants.ts";
import { everyStatement } from "./every-statement.ts";
import {
  type Case,
  HANDED_BACK,
  NO_FENCES,
  SIGHT,
  type Subject,
  subjectsIn,
  TAKEOVER,
  WORLD,
} from "./fence-subjects.ts";
import { connectClient, createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
let client: Client;
let subjects: readonly Subject[];

beforeAll(async () => {
  subject = await createPostgresSubject();
  client = subject.client;
  const { rows } = await client.query(openTransaction.sql, ["0", "0", "0", "fencepost.transaction_timeout", "0"]);
  const { rows: own } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const history = [rows[0].system_identifier, rows[0].timeline, rows[0].epoch, "0"] as const;
  subjects = subjectsIn(history, own[0]?.pid as number);
});
afterAll(() => subject.close());

interface Outcome {
  readonly accepted: boolean;
  /** Everything that can be observed after the statement: its error, its result, and the rows in the database. */
  readonly sight: string;
}

type Answer = { readonly error: string } | { readonly rows: readonly Record<string, unknown>[] };

async function ask(by: Client, sql: string, values: readonly unknown[]): Promise<Answer> {
  try {
    const { rows } = await by.query(sql, [...values]);
    return { rows: rows.filter(({ alive }) => alive !== false) };
  } catch (error) {
    return { error: (error as { code?: string }).code ?? String(error) };
  }
}

/** Runs a variant of the statement with one condition removed, in a database state that is rolled back afterwards. */
async function play({ values, answers }: Subject, sql: string, { world, values: other = {} }: Case): Promise<Outcome> {
  await client.query(`BEGIN; ${WORLD}; ${world ?? ""}; SAVEPOINT asked`);
  try {
    const answer = await ask(
      client,
      sql,
      values.map((value, index) => other[index + 1] ?? value),
    );
    if ("error" in answer) return { accepted: false, sight: answer.error };
    const { rows } = await client.query<{ sight: string }>(SIGHT);
    const lanes = answer.rows.map(({ chain_id, signer }) => `${chain_id} ${signer}`);
    return { accepted: answer.rows.length >= answers, sight: [...lanes, rows[0]?.sight].join("; ") };
  } finally {
    await client.query("ROLLBACK");
  }
}

/** True if the variant of the statement removes a lock. Conditions are tested in one session; a lock needs two. */
function isLock({ without }: Mutant): boolean {
  return without.startsWith("FOR NO KEY UPDATE");
}

const nameOf = ({ statement }: Subject): string => statement.name.replace("fencepost:", "");

describe("every SQL statement that checks the fence", () => {
  // protects [The fence] src/adapters/postgres/statements/lane.ts, src/adapters/postgres/statements/session.ts, src/adapters/postgres/statements/commit-marker.ts, src/adapters/postgres/statements/lease.ts, src/adapters/postgres/statements/node-instance.ts
  it("refuses each case that violates a condition of the statement", async () => {
    const wrong: string[] = [];
    for (const each of subjects) {
      for (const [cases, expected] of [
        [each.accepts, true],
        [each.refuses, false],
      ] as const) {
        for (const one of cases) {
          const { accepted, sight } = await play(each, each.statement.sql, one);
          if (accepted !== expected) wrong.push(`${nameOf(each)}: ${one.name}: ${sight}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  // protects [The fence] src/adapters/postgres/statements/lane.ts
  it("has a test case for each condition of the statement", async () => {
    const unnoticed: string[] = [];
    let mutants = 0;
    for (const each of subjects) {
      const cases = [...each.refuses, ...each.accepts];
      const usual = new Map<Case, string>();
      for (const one of cases) usual.set(one, (await play(each, each.statement.sql, one)).sight);
      for (const mutant of mutantsOf(each.statement.sql)) {
        if (each.beside?.some(([condition]) => condition.test(mutant.without)) || isLock(mutant)) continue;
        mutants++;
        let noticed = false;
        for (const one of cases) {
          noticed ||= (await play(each, mutant.sql, one)).sight !== usual.get(one);
          if (noticed) break;
        }
        if (!noticed) unnoticed.push(`${nameOf(each)} without ${mutant.without}`);
      }
    }
    expect(unnoticed).toEqual([]);
    expect(mutants).toBeGreaterThan(70);
  });

  // protects [The fence] src/adapters/postgres/statements/lane.ts
  it("is covered by this file: no statement on lanes or instances is missing", async () => {
    const tried = new Set([...subjects.map(nameOf), ...Object.keys(NO_FENCES)]);
    const writes =
      /(UPDATE|INTO|DELETE FROM) fencepost\.(lane|node_instance)\b|FOR NO KEY UPDATE|require_open|histories/;
    const all = (await everyStatement()).filter(({ statement }) => writes.test(statement.sql));
    const names = all.map(({ statement }) => statement.name.replace("fencepost:", ""));
    expect(names.length).toBeGreaterThan(15);
    expect(names.filter((name) => !tried.has(name))).toEqual([]);
  });
});

describe("a stale owner that waits for a lane's lock during a takeover", () => {
  let usurper: Client;
  beforeAll(async () => {
    usurper = await connectClient(subject.url);
    await client.query(WORLD);
  });
  afterAll(() => usurper.end());

  /**
   * True if an owner that lost its lane to a takeover is refused. With the lock, its statement waits until the takeover
   * is committed; without the lock, it does not wait.
   */
  async function overtaken({ values, answers }: Subject, sql: string): Promise<boolean> {
    const stale = await connectClient(subject.url);
    await usurper.query("BEGIN");
    await usurper.query(TAKEOVER);
    await stale.query("BEGIN");
    const asked = ask(stale, sql, values);
    await Promise.race([asked, subject.whenWaiting(1)]);
    await usurper.query("COMMIT");
    const answer = await asked;
    await stale.query("ROLLBACK");
    await stale.end();
    await client.query(HANDED_BACK);
    return "error" in answer || answer.rows.length < answers;
  }

  // protects [The fence] src/adapters/postgres/statements/lane.ts
  it.each(["lock-lanes", "prove-lanes", "release-lane"])(
    "cannot change the lane with the statement %s",
    async (name) => {
      const each = subjects.find((one) => nameOf(one) === name) as Subject;
      expect(await overtaken(each, each.statement.sql)).toBe(true);
      for (const mutant of mutantsOf(each.statement.sql).filter(isLock)) {
        expect(await overtaken(each, mutant.sql), `without ${mutant.without}`).toBe(false);
      }
    },
  );
});
