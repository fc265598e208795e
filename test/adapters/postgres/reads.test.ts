import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadsFrom } from "../../../src/adapters/postgres/stores/loads.ts";
import { findPage, pageOf } from "../../../src/adapters/postgres/stores/pages.ts";
import { queriesFrom } from "../../../src/adapters/postgres/stores/queries.ts";
import { STATES } from "../../../src/domain/transaction/transitions.ts";
import type { ListFilter } from "../../../src/ports/query-store.ts";
import { type Ask, countBuffers } from "../../support/count-buffers.ts";
import { BUSY_CHAIN, fillTables, QUIET_CHAIN, signerAt, UNUSED_CHAIN } from "../../support/large-tables.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const SIZE = { final: 60_000, waiting: 40_000, lanes: 20 };
/**
 * Largest number of 8 kB pages (buffers) that a read may touch, on every version of the server. Scanning a part of the
 * table would touch thousands.
 */
const MOST_BUFFERS = 160;
/** Additional buffers for the newest transactions in flight, which are looked up by key one at a time. */
const FOUND_BY_KEY = 51 * 6;

const orders = ["newest", "oldest"] as const;

/**
 * Cost of reads on large tables. Queries are planned as a store plans them: with generic plans, for unknown parameters.
 */
describe("queries on large tables", () => {
  let subject: PostgresSubject;
  let client: Client;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    client = subject.client;
    await fillTables(client, SIZE);
  }, 60_000);
  afterAll(() => subject.close());

  const buffersOf = (ask: Ask) => countBuffers(client, ask);

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
      orders.map((order) => ({ ...scope, ...(state && { state }), order, limit: 51 })),
    ),
  );

  // protects [Reads] src/adapters/postgres/stores/pages.ts, src/adapters/postgres/rows/page-scopes.ts, src/adapters/postgres/statements/transaction-page.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("read a list page at the same cost for every filter, even if few rows match", async () => {
    const costs: [string, number][] = [];
    for (const filter of pages) {
      const buffers = await buffersOf((connections) => findPage(connections, filter));
      costs.push([JSON.stringify(filter), buffers]);
    }
    const limit = (filter: string) => (/^(?!.*signer).*TRACKING.*newest/.test(filter) ? FOUND_BY_KEY : MOST_BUFFERS);
    const dear = costs.filter(([filter, buffers]) => buffers > limit(filter));
    expect(dear).toEqual([]);
  });

  const followed: readonly [Omit<ListFilter, "order">, string][] = [
    [{ state: "TRACKING", limit: 200 }, "state = 'TRACKING'"],
    [{ state: "ALLOCATED", limit: 9_000 }, "state = 'ALLOCATED'"],
    [{ state: "CONFIRMED", limit: 9_000, chainId: BUSY_CHAIN }, `state = 'CONFIRMED' AND chain_id = ${BUSY_CHAIN}`],
    [{ signer: signerAt(0), limit: 900 }, `signer = '${signerAt(0)}'`],
    [{ signer: signerAt(7), state: "CONFIRMED", limit: 900 }, `signer = '${signerAt(7)}' AND state = 'CONFIRMED'`],
    [{ state: "CREATED", limit: 2 }, "state = 'CREATED'"],
    [{ chainId: QUIET_CHAIN, limit: 2 }, `chain_id = ${QUIET_CHAIN}`],
  ];
  it.each(followed.flatMap(([filter, where]) => orders.map((order) => [order, filter, where] as const)))(
    // protects [Reads] src/adapters/postgres/rows/page-scopes.ts
    "return every row exactly once over all pages (%s first, filter %j)",
    async (order, filter, where) => {
      const { rows } = await client.query<{ tx_id: string }>(
        `SELECT tx_id FROM (
           SELECT tx_id, chain_id, signer, state FROM fencepost.transaction UNION ALL
           SELECT tx_id, chain_id, signer, 'CREATED' FROM fencepost.intake WHERE alias_of IS NULL
         ) AS listed WHERE ${where} ORDER BY tx_id${order === "newest" ? " DESC" : ""}`,
      );
      const found: string[] = [];
      let page: readonly string[] = [];
      do {
        const after = found.at(-1);
        await buffersOf(async (connections) => {
          page = await findPage(connections, { ...filter, order, ...(after !== undefined && { after }) });
        });
        page = page.slice(0, filter.limit);
        found.push(...page);
      } while (page.length === filter.limit);
      expect(found.length).toBeGreaterThan(0);
      expect(found).toEqual(rows.map((row) => row.tx_id));
    },
  );

  // protects [Reads] src/adapters/postgres/statements/lane.ts, src/adapters/postgres/statements/census.ts, src/adapters/postgres/stores/queries.ts
  it("read a page of signers, one signer, or all counts at low cost", async () => {
    const costs = {
      signers: await buffersOf((connections) => queriesFrom(connections).lanesAfter(null, 20)),
      signer: await buffersOf((connections) => queriesFrom(connections).lanes(signerAt(0))),
      everything: await buffersOf((connections) => queriesFrom(connections).census()),
    };
    expect(costs.signers).toBeLessThan(20 * 60);
    expect(costs.signer).toBeLessThan(100);
    expect(costs.everything).toBeLessThan(300);
  });
});

describe("a list of a range of time", () => {
  const ROWS = 60_000;
  let subject: PostgresSubject;
  let last: Date;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    const { client } = subject;
    // One transaction a second, with the time in its id, on two lanes.
    await client.query(
      `INSERT INTO fencepost.lane (chain_id, signer, next_nonce)
       SELECT ${BUSY_CHAIN}, '0x' || lpad(to_hex(n), 40, '0'), ${ROWS} FROM generate_series(0, 1) AS n`,
    );
    await client.query(
      `INSERT INTO fencepost.transaction (
         tx_id, chain_id, signer, nonce, state, live, outcome, history_count, last_event, attempt_count, created_at, updated_at
       )
       SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000800000000000' || lpad(to_hex(n % 256), 4, '0'))::uuid,
         ${BUSY_CHAIN}, '0x' || lpad(to_hex(n % 2), 40, '0'), n, 'CONFIRMED', false, 'CONFIRMED', 1, 'confirm', 1, at, at
       FROM generate_series(1, ${ROWS}) AS n, LATERAL (
         SELECT date_trunc('second', now()) - interval '1 second' * (${ROWS} - n) AS at
       ) AS made`,
    );
    await client.query("VACUUM (ANALYZE) fencepost.transaction");
    const { rows } = await client.query<{ last: Date }>("SELECT max(created_at) AS last FROM fencepost.transaction");
    last = (rows[0] as { readonly last: Date }).last;
  }, 60_000);
  afterAll(() => subject.close());

  const scopes: readonly Partial<ListFilter>[] = [
    {},
    { chainId: BUSY_CHAIN },
    { signer: signerAt(1) },
    { signer: signerAt(1), state: "CONFIRMED" },
  ];

  // protects [Reads] src/adapters/postgres/stores/pages.ts
  it("reads neither the rows before the range nor those after it", async () => {
    const hour = { from: last.getTime() - 8 * 3_600_000, to: last.getTime() - 7 * 3_600_000 };
    const range = { createdAfter: new Date(hour.from), createdBefore: new Date(hour.to) };
    const costs: [string, number][] = [];
    for (const scope of scopes) {
      for (const order of orders) {
        const filter = { ...scope, ...range, order, limit: 51 };
        let found: readonly string[] = [];
        const buffers = await countBuffers(subject.client, async (connections) => {
          found = await pageOf(connections, filter);
        });
        costs.push([JSON.stringify(filter), buffers]);
        const seconds = scope.signer === undefined ? 1 : 2;
        const times = found.map((id) => Number.parseInt(id.replace("-", "").slice(0, 12), 16));
        expect(times).toHaveLength(51);
        const first = order === "oldest" ? hour.from : hour.to - 1_000;
        expect(Math.abs((times[0] ?? 0) - first)).toBeLessThanOrEqual(1_000 * seconds);
        expect(Math.abs((times[50] ?? 0) - (times[0] ?? 0))).toBe(50_000 * seconds);
      }
    }
    // The five minutes beside the range are compared row by row: some 300 rows, with a few buffers each.
    expect(costs.filter(([, buffers]) => buffers > 6_000)).toEqual([]);
  });

  it("finds nothing, soon, in a range without rows", async () => {
    for (const order of orders) {
      for (const range of [
        { createdAfter: new Date(last.getTime() + 600_000) },
        { createdBefore: new Date(last.getTime() - ROWS * 1_000 - 600_000) },
      ]) {
        let found: readonly string[] = ["not read"];
        const buffers = await countBuffers(subject.client, async (connections) => {
          found = await pageOf(connections, { ...range, order, limit: 51 });
        });
        expect(found).toEqual([]);
        expect(buffers).toBeLessThan(MOST_BUFFERS);
      }
    }
  });
});

describe("reading one page from many lanes", () => {
  let subject: PostgresSubject;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    await fillTables(subject.client, { final: 1_000, waiting: 20_000, lanes: 300 });
  }, 60_000);
  afterAll(() => subject.close());

  // protects [Reads] src/adapters/postgres/statements/lane.ts, src/adapters/postgres/statements/census.ts, src/adapters/postgres/stores/queries.ts
  it("reads only a few rows of each lane for a list of signers", async () => {
    const buffers = await countBuffers(subject.client, (connections) => queriesFrom(connections).lanesAfter(null, 100));
    expect(buffers / 100).toBeLessThan(60);
  });

  // protects [Reads] src/adapters/postgres/rows/page-scopes.ts
  it.each(orders)("does not read all in-flight transactions (%s first)", async (order) => {
    const filter = { state: "TRACKING", order, limit: 51 } as const;
    const buffers = await countBuffers(subject.client, (connections) => findPage(connections, filter));
    expect(buffers).toBeLessThan(FOUND_BY_KEY + MOST_BUFFERS);
  });
});

describe("the look-up of request ids on many lanes", () => {
  const LANES = 300;
  let subject: PostgresSubject;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    await subject.client.query(
      `INSERT INTO fencepost.lane (chain_id, signer)
       SELECT ${BUSY_CHAIN}, '0x' || lpad(to_hex(lane), 40, '0') FROM generate_series(0, ${LANES - 1}) AS lane`,
    );
    await subject.client.query(
      `INSERT INTO fencepost.transaction (
         tx_id, chain_id, signer, request_id, nonce, state, history_count, last_event, created_at, updated_at
       )
       SELECT gen_random_uuid(), ${BUSY_CHAIN}, '0x' || lpad(to_hex(lane), 40, '0'), 'r' || n, n, 'ALLOCATED', 1, 'allocate',
         now(), now() FROM generate_series(0, ${LANES - 1}) AS lane, generate_series(0, 9) AS n`,
    );
    await subject.client.query(
      `INSERT INTO fencepost.payload (tx_id, chain_id, data, value, fingerprint)
       SELECT tx_id, chain_id, '', 1, decode(repeat('00', 32), 'hex') FROM fencepost.transaction`,
    );
    await subject.client.query("VACUUM (ANALYZE) fencepost.transaction, fencepost.payload");
  });
  afterAll(() => subject.close());

  it.each([
    ["that are not there", (n: number) => `new-${n}`, 0],
    ["that each of the lanes has used", (n: number) => `r${n % 10}`, LANES],
    // protects [Reads] src/adapters/postgres/statements/transaction.ts
  ])("searches each id once, not once per lane, for ids %s", async (_, requestId, found) => {
    const asked = Array.from({ length: LANES }, (_, n) => ({
      lane: { chainId: BUSY_CHAIN, signer: signerAt(n) },
      requestIds: [requestId(n)],
    }));
    let existing: readonly unknown[] = [];
    const buffers = await countBuffers(subject.client, async (connections) => {
      existing = await loadsFrom(connections).findByRequestIds(asked);
    });
    expect(existing).toHaveLength(found);
    expect(buffers / LANES).toBeLessThan(10);
  });
});
