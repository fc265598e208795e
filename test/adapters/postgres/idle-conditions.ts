import type { Client } from "pg";
import type { Statement } from "../../../src/adapters/postgres/statements/statement.ts";
import { mutantsOf } from "../../support/sql-mutants.ts";

/** Statements to test, and database states in which their conditions decide. */
export interface Topic {
  /** SQL that creates the usual database state. */
  readonly world: string;
  /** SQL that changes the usual database state, keyed by the name of the resulting state. */
  readonly states: Readonly<Record<string, string>>;
  readonly subjects: readonly {
    readonly statement: Pick<Statement<unknown>, "name" | "sql">;
    readonly values: readonly unknown[];
  }[];
  /** SQL that reads everything that a statement may have changed. */
  readonly left: string;
  /** Conditions that decide nothing, and why the statement has them. */
  readonly beside?: Readonly<Record<string, string>>;
}

/** Result and effects of one variant of a statement, in a database state that is rolled back afterwards. */
export async function sight(
  client: Client,
  { world, left }: Topic,
  state: string,
  { sql, values }: { readonly sql: string; readonly values: readonly unknown[] },
): Promise<string> {
  await client.query(`BEGIN; ${world}; ${state}`);
  try {
    const { rows } = await client.query(sql, [...values]);
    return JSON.stringify([rows, (await client.query(left)).rows]);
  } catch (error) {
    return JSON.stringify((error as { code?: string }).code);
  } finally {
    await client.query("ROLLBACK");
  }
}

/** Conditions that can be removed, one at a time, without changing the result in any state. */
export async function idleConditions(client: Client, topic: Topic): Promise<readonly string[]> {
  const idle = new Map<string, boolean>();
  for (const { statement, values } of topic.subjects) {
    const usual = new Map<string, string>();
    for (const state of Object.values(topic.states)) {
      usual.set(state, await sight(client, topic, state, { sql: statement.sql, values }));
    }
    for (const { sql, without } of mutantsOf(statement.sql)) {
      const name = `${statement.name}: ${without}`;
      if (idle.get(name) !== false) idle.set(name, !(await isFelt(client, topic, usual, { sql, values })));
    }
  }
  return [...idle].flatMap(([name, isIdle]) => (isIdle && topic.beside?.[name] === undefined ? name : []));
}

async function isFelt(
  client: Client,
  topic: Topic,
  usual: ReadonlyMap<string, string>,
  asked: Parameters<typeof sight>[3],
): Promise<boolean> {
  for (const [state, before] of usual) if ((await sight(client, topic, state, asked)) !== before) return true;
  return false;
}
