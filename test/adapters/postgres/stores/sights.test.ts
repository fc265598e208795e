import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DurableRuntime } from "../../../../src/adapters/postgres/session/durably.ts";
import { queriesFrom } from "../../../../src/adapters/postgres/stores/queries.ts";
import { sightsFrom } from "../../../../src/adapters/postgres/stores/sights.ts";
import type { SightStore } from "../../../../src/ports/sight-store.ts";
import { type Ask, countBuffers } from "../../../support/count-buffers.ts";
import { BUSY_CHAIN, fillTables, QUIET_CHAIN, signerAt } from "../../../support/large-tables.ts";
import { createPostgresSubject, type PostgresSubject } from "../postgres-subject.ts";

const LANES = 300;
const SIZE = { final: 60_000, waiting: 20_000, lanes: LANES };
/** Largest number of pages that a read may touch. The tables have thousands of pages, so a scan of one exceeds it. */
const FEW = 250;
/** Number of pages of the lane table: each lane has one row, and ten rows fit in a page. */
const LANES_TABLE = LANES / 10;

/** Cost of the overview queries on large tables, planned as a store plans them. */
describe("dashboard queries on large tables", () => {
  let subject: PostgresSubject;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    await fillTables(subject.client, SIZE);
    await subject.client.query(
      `UPDATE fencepost.transaction SET held_since = now() WHERE live AND state = 'TRACKING' AND signer = '${signerAt(9)}'
         AND nonce % 20 = 0`,
    );
    await subject.client.query(
      `INSERT INTO fencepost.completion (seq, epoch, tx_id, chain_id, signer, nonce, state, settled, at)
       SELECT row_number() OVER (ORDER BY t.tx_id), 1, t.tx_id, t.chain_id, t.signer, t.nonce, t.outcome, true, now()
       FROM fencepost.transaction AS t WHERE t.outcome IS NOT NULL`,
    );
    await subject.client.query(
      `INSERT INTO fencepost.hole (chain_id, signer, nonce, why, detail, since)
       SELECT ${BUSY_CHAIN}, '${signerAt(5)}', 1999000 + n, 'givenUp', 'refused', now() FROM generate_series(1, 20) AS n`,
    );
    await subject.client.query(
      "VACUUM (ANALYZE) fencepost.transaction, fencepost.completion, fencepost.hole, fencepost.lane",
    );
  }, 60_000);
  afterAll(() => subject.close());

  /** The `DurableRuntime` is needed only to write reports, which no test in this file does. */
  const sights = (connections: Parameters<Ask>[0]) =>
    sightsFrom(connections, {} as DurableRuntime, {} as DurableRuntime);
  const costOf = (ask: (store: SightStore) => unknown) =>
    countBuffers(subject.client, (connections) => ask(sights(connections)));
  const from = (text: string) => ({ from: text, to: `${text}\u{10FFFF}` });
  const ID = "00000000-0000-7000-8000-000000000100";

  // protects [Everything at once] src/adapters/postgres/statements/sight.ts
  it("use small indexes to find lanes and transactions with problems", async () => {
    let found: Awaited<ReturnType<SightStore["troubles"]>> | null = null;
    const buffers = await costOf(async (store) => {
      found = await store.troubles(500);
    });
    expect(found).toMatchObject({
      lanes: [{ lane: { signer: signerAt(0) } }, { hole: { detail: "refused" } }],
    });
    expect(buffers).toBeLessThan(FEW);
  });

  // protects [Everything at once] src/adapters/postgres/statements/sight.ts
  it("read only the counts stored on the lanes for totals", async () => {
    const all = await costOf((store) => store.totals({ signers: null, chains: null }));
    const few = await costOf((store) => store.totals({ signers: new Set([signerAt(3)]), chains: null }));
    expect(all).toBeLessThan(FEW + LANES_TABLE);
    expect(few).toBeLessThan(FEW + LANES_TABLE);
  });

  it("find lanes without an owner by the counts stored on the lanes, and their oldest transaction by key", async () => {
    const most = 100;
    let found: Awaited<ReturnType<SightStore["unownedLanes"]>> = [];
    const buffers = await costOf(async (store) => {
      found = await store.unownedLanes(most);
    });
    expect(found).toHaveLength(most);
    expect(buffers).toBeLessThan(FEW + LANES_TABLE + most * 6);
  });

  it("compute rates and durations from the newest rows", async () => {
    // Reads two thousand transactions and two thousand completions, and looks two hundred of them up by key.
    expect(await costOf((store) => store.pulse())).toBeLessThan(200 * 6 + 800);
  });

  it("find the oldest open transaction through an index", async () => {
    expect(await costOf((store) => store.oldestOpen([BUSY_CHAIN, QUIET_CHAIN]))).toBeLessThan(FEW);
    const store = await subject.connect();
    // In this data, each lane has four settled transactions that are only watched for reorgs. They are older than all
    // open transactions.
    expect(await store.oldestOpen([BUSY_CHAIN, QUIET_CHAIN])).toEqual(["unknown", "none"]);
    await store.close();
  });

  it.each<[string, (store: SightStore) => unknown]>([
    [
      "an id",
      (store) => store.search({ txIds: { from: ID, to: ID }, reservationIds: { from: ID, to: ID }, limit: 20 }),
    ],
    [
      "the beginning of an id",
      (store) => store.search({ txIds: { from: ID, to: ID.replace(/0100$/, "ffff") }, limit: 20 }),
    ],
    ["a hash", (store) => store.search({ txHash: `0x${ID.replaceAll("-", "").padStart(64, "0")}`, limit: 20 })],
    ["a request id", (store) => store.search({ requestIds: from("order"), limit: 20 })],
    ["a signer", (store) => store.search({ signers: from("0x0000"), limit: 20 })],
    ["the nonce of a signer", (store) => store.search({ nonce: { nonce: 7, signers: from(signerAt(3)) }, limit: 20 })],
    // protects [Everything at once] src/adapters/postgres/statements/find.ts, src/application/queries/sights.ts
  ])("find %s by an index", async (_, ask) => {
    expect(await costOf(ask)).toBeLessThan(FEW);
  });

  it("search every lane by key for a nonce that is given without a signer", async () => {
    const buffers = await costOf((store) =>
      store.search({ nonce: { nonce: 999_999, signers: from("0x") }, limit: 20 }),
    );
    expect(buffers).toBeLessThan(LANES * 5);
  });

  it("read a range of 2,000 nonces by key, wherever it begins", async () => {
    const lane = { chainId: BUSY_CHAIN, signer: signerAt(5) };
    for (const first of [0, 1_999_000, 2_000_000, 9_000_000]) {
      // A range in this test has at most about three hundred rows. Each row costs one page of the table and a few pages
      // of the index.
      expect(await costOf((store) => store.nonces(lane, first, first + 1_999))).toBeLessThan(300 * 3);
    }
  });

  it("read the cluster's history from its end", async () => {
    expect(await costOf((store) => store.past(100))).toBeLessThan(20);
  });

  it.each([
    ["of a chain", { chainId: BUSY_CHAIN }],
    ["of a node", { owner: "nobody" }],
    ["that need attention", { needsAttention: true }],
  ])("list lanes %s without reading their transactions", async (_, filter) => {
    const ask: Ask = (connections) => queriesFrom(connections).lanesAfter(null, 20, filter);
    expect(await countBuffers(subject.client, ask)).toBeLessThan(20 * 60 + LANES_TABLE);
  });
});
