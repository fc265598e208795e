import type { Client } from "pg";
import type { Run } from "../../src/adapters/postgres/session/connections.ts";
import { domainName } from "../../src/adapters/postgres/session/pipeline.ts";
import { openRead } from "../../src/adapters/postgres/statements/session.ts";

interface Plan {
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
}

export type Ask = (connections: { read: <T>(find: (run: Run) => Promise<T>) => Promise<T> }) => unknown;

/** Runs what is asked for, planned as a store plans it, and counts the pages that the server looked at for it. */
export async function countBuffers(client: Client, ask: Ask): Promise<number> {
  let buffers = 0;
  const run: Run = async (statement, values) => {
    await client.query(`PREPARE asked AS ${statement.sql}`);
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
  // One statement after the other: they share a connection and a name.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn: Run = (statement, values) => {
    const answer = last.then(() => run(statement, values));
    last = answer.catch(() => undefined);
    return answer;
  };
  await ask({ read: (find) => find(inTurn) });
  await client.query("ROLLBACK");
  return buffers;
}

/** Answers like the store's own connections. */
function inDomainNames<Row>(row: object): Row {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [domainName(column), value])) as Row;
}

function literal(value: unknown): string {
  if (value === null) return "NULL";
  return Array.isArray(value) ? `'{${value.join(",")}}'` : `'${String(value)}'`;
}
