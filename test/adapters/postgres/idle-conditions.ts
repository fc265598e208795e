import type { Client } from "pg";
import type { Statement } from "../../../src/adapters/postgres/statements/statement.ts";
import { mutantsOf } from "../../support/sql-mutants.ts";

/** SQL statements to test, and database states in which their conditions make a difference. */
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
  /** Conditions that change no result, and why the statement still has them. */
  readonly beside?: Readonly<Record<string, string>>;
}

/**
 * Runs one variant of a statement in a database state that is rolled back afterwards. Returns its result and its
 * effects.
 */
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

/**
 * Finds conditions of the statements that make no difference: without the condition, the result is the same in every
 * state.
 */
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
