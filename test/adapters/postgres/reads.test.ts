import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Run } from "../../../src/adapters/postgres/connections.ts";
import { findPage } from "../../../src/adapters/postgres/pages.ts";
import { Queries } from "../../../src/adapters/postgres/queries.ts";
import { openRead } from "../../../src/adapters/postgres/statements/open-read.ts";
import { STATES } from "../../../src/domain/transitions.ts";
import type { ListFilter } from "../../../src/ports/query-store.ts";
import { BUSY_CHAIN, fillTables, QUIET_CHAIN, signerAt, UNUSED_CHAIN } from "../../support/large-tables.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const SIZE = { final: 60_000, waiting: 40_000, lanes: 20 };
/**
 * Pages of 8 kB; walking a part of the table takes thousands. Before 18 the server ends a walk by the first column of a
 * compared row alone, so that one of a quiet chain goes on over the entries of others with the same outcome.
 */
const MOST_BUFFERS = { whole: 160, firstColumn: 700 };
/** Found row by row over all lanes, because fewer of them are live than not. */
const IN_FLIGHT = 64 * SIZE.lanes;

/** What a read costs on large tables, planned as a store plans it: for parameters that are not known. */
describe("on large tables", () => {
  let subject: PostgresSubject;
  let client: Client;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    client = subject.client;
    await fillTables(client, SIZE);
  }, 60_000);
  afterAll(() => subject.close());

  interface Plan {
    readonly "Shared Hit Blocks": number;
    readonly "Shared Read Blocks": number;
  }

  /** Runs what is asked for, and counts the pages that the server looked at for it. */
  async function buffersOf(ask: (connections: { read: <T>(find: (run: Run) => Promise<T>) => Promise<T> }) => unknown) {
    let buffers = 0;
    const run: Run = async (statement, values) => {
      await client.query(`PREPARE asked AS ${statement.sql}`);
      const literals = values.map((value) => (value === null ? "NULL" : `'${String(value)}'`));
      const call = `EXECUTE asked${literals.length === 0 ? "" : `(${literals.join(", ")})`}`;
      const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${call}`);
      const plan: Plan = rows[0]["QUERY PLAN"][0].Plan;
      buffers += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
      const { rows: found } = await client.query(call);
      await client.query("DEALLOCATE asked");
      return found;
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

  const scopes: readonly Partial<ListFilter>[] = [
    {},
    { chainId: BUSY_CHAIN },
    { chainId: QUIET_CHAIN },
    { chainId: UNUSED_CHAIN },
    { signer: signerAt(0) },
    { signer: signerAt(0), chainId: QUIET_CHAIN },
    { signer: signerAt(0), chainId: UNUSED_CHAIN },
    { signer: signerAt(999_999) },
  ];
  const pages = scopes.flatMap((scope) =>
    [undefined, ...STATES].flatMap((state) =>
      (["newest", "oldest"] as const).map((order) => ({ ...scope, ...(state && { state }), order, limit: 51 })),
    ),
  );

  it("a page of a list costs the same whatever it asks for, and however little it finds", async () => {
    const costs: [string, number][] = [];
    for (const filter of pages) {
      const buffers = await buffersOf((connections) => findPage(connections, filter));
      costs.push([JSON.stringify(filter), buffers]);
    }
    const { rows } = await client.query<{ version: number }>(
      "SELECT current_setting('server_version_num')::int AS version",
    );
    const most = (rows[0]?.version ?? 0) >= 180_000 ? MOST_BUFFERS.whole : MOST_BUFFERS.firstColumn;
    const limit = (filter: string) => (/^(?!.*signer).*TRACKING/.test(filter) ? IN_FLIGHT : most);
    const dear = costs.filter(([filter, buffers]) => buffers > limit(filter));
    expect(dear).toEqual([]);
  });

  it("so do a page of signers, one signer, and the counts by state", async () => {
    const costs = {
      signers: await buffersOf((connections) => new Queries(connections).lanesAfter(null, 20)),
      signer: await buffersOf((connections) => new Queries(connections).lanes(signerAt(0))),
      states: await buffersOf((connections) => new Queries(connections).liveStates()),
    };
    expect(costs.signers).toBeLessThan(20 * 60);
    expect(costs.signer).toBeLessThan(100);
    expect(costs.states).toBeLessThan(20);
  });
});
