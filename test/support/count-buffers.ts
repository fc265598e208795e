import type { Client } from "pg";
import type { Answers, Reading } from "../../src/adapters/postgres/session/connections.ts";
import { domainName } from "../../src/adapters/postgres/session/pipeline.ts";
import { openRead } from "../../src/adapters/postgres/statements/session.ts";
import type { Command } from "../../src/adapters/postgres/statements/statement.ts";

interface Plan {
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
}

export type Ask = (connections: Reading) => unknown;

/** Runs a query, planned as a store plans it, and counts the pages that the server read for it. */
export async function countBuffers(client: Client, ask: Ask): Promise<number> {
  let buffers = 0;
  const run = async ({ sql, values }: Command) => {
    await client.query(`PREPARE asked AS ${sql}`);
    const call = `EXECUTE asked${values.length === 0 ? "" : `(${values.map(literal).join(", ")})`}`;
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${call}`);
    const plan: Plan = rows[0]["QUERY PLAN"][0].Plan;
    buffers += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    const { rows: found } = await client.query(call);
    await client.query("DEALLOCATE asked");
    return found.map((row) => inDomainNames(row));
  };
  await client.query("BEGIN");
  await client.query(openRead.sql, ["60000"]);
  // Statements run one after the other, because they share a connection and a statement name.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = (command: Command) => {
    const answer = last.then(() => run(command));
    last = answer.catch(() => undefined);
    return answer;
  };
  const read = async <const Commands extends readonly Command[]>(...commands: Commands) =>
    (await Promise.all(commands.map(inTurn))) as unknown as Answers<Commands>;
  await ask({ read });
  await client.query("ROLLBACK");
  return buffers;
}

/** Renames the columns of a row as the store's own connections do. */
function inDomainNames<Row>(row: object): Row {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [domainName(column), value])) as Row;
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  return Array.isArray(value) ? `'{${value.join(",")}}'` : `'${String(value)}'`;
}
