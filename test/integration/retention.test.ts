/**
 * Tests of a node with a retention of one hour and transactions made long ago, with real PostgreSQL and the embedded
 * library.
 */
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFencepost, type Fencepost } from "../../src/index.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { type SimulatedServer, startSimulatedServer } from "../doubles/simulated-chain/server.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { connect, type Database, KEYS, OTHER_SIGNER, SIGNER } from "../support/integration.ts";
import { makeOld } from "../support/old-transactions.ts";
import { pricedTransfer, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

describe("a node with a retention age", () => {
  let database: TestDatabase;
  let chain: SimulatedServer;
  let rows: Database & { end(): Promise<void> };
  let fencepost: Fencepost;
  /** The transaction id that the caller was given; `makeOld` then changes the id in the row to an older one. */
  let oldTxId: string;
  let truncatedAt: number;

  const inPool = (index: number) => ({ ...transfer(index, "pooled"), signer: { pool: "payouts" } });
  /** A transfer of more than the signer's balance, so it cannot be sent. */
  const dear = { ...transfer(1, "old"), payload: { ...transfer(1, "old").payload, value: 10n ** 30n } };
  const count = async (table: string) => (await rows.query(`SELECT FROM fencepost.${table}`)).length;

  beforeAll(async () => {
    database = await createTestDatabase();
    rows = connect(database.url);
    chain = await startSimulatedServer({ chain: new SimulatedChain(), blockTimeMs: 20 });
    fencepost = await createFencepost({
      databaseUrl: database.url,
      chains: [{ rpc: chain.url, confirmations: 1, pollInterval: "50ms" }],
      signers: KEYS,
      retention: "1h",
      pools: { payouts: [SIGNER, OTHER_SIGNER] },
    });
    const sent = await Promise.all([
      ...[0, 1].map((index) => fencepost.send(transfer(index, "old"))),
      fencepost.send(inPool(0)),
    ]);
    for (const { txId } of sent) await fencepost.waitFor(txId, { timeoutMs: 30_000 });
    oldTxId = (sent[0] as (typeof sent)[0]).txId;
    truncatedAt = (await fencepost.completionsPage({ after: 0 })).next;
    await makeOld((sql) => rows.query(sql));
    await waitUntil(async () => (await count("transaction")) === 0, "everything has left");
  }, 60_000);
  afterAll(async () => {
    await fencepost.close();
    await chain.close();
    await rows.end();
    await database.drop();
  });

  const REFUSED = { code: "REQUEST_ID_REUSED", status: 409, message: expect.stringContaining("kept no more") };

  it("deletes all data older than that age except used request ids", async () => {
    for (const table of ["payload", "attempt", "receipt", "step", "completion", "pool_choice"])
      expect([table, await count(table)]).toEqual([table, 0]);
    expect(await rows.query("SELECT FROM fencepost.spent_request")).toHaveLength(4);
    await expect(fencepost.get(oldTxId)).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: expect.stringContaining("final more than 1 hour ago are kept no more"),
    });
    await expect(fencepost.getByRequest({ signer: SIGNER, requestId: "old-0" })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });

  // protects [Retention] src/application/stages/1-create/answer-existing.ts, src/application/detours/intake.ts, src/adapters/postgres/stores/loads.ts
  it("refuses a late repeat of a deleted request without calling the chain", async () => {
    const nonces = await rows.query("SELECT next_nonce FROM fencepost.lane ORDER BY signer");
    await expect(fencepost.send(transfer(0, "old"))).rejects.toMatchObject(REFUSED);
    await expect(fencepost.send(pricedTransfer(1, "old"))).rejects.toMatchObject(REFUSED);
    await expect(fencepost.send(dear)).rejects.toMatchObject(REFUSED);
    await expect(fencepost.reserveNonce({ signer: SIGNER, requestId: "old-0" })).rejects.toMatchObject(REFUSED);
    expect(await rows.query("SELECT next_nonce FROM fencepost.lane ORDER BY signer")).toEqual(nonces);
  });

  it("refuses a late repeat of a deleted request to a pool", async () => {
    await expect(fencepost.send(inPool(0))).rejects.toMatchObject(REFUSED);
    const results = await fencepost.sendMany([transfer(0, "old"), transfer(0, "new"), inPool(0), inPool(1)]);
    expect(results.map((result) => ("code" in result ? result.code : "sent"))).toEqual([
      "REQUEST_ID_REUSED",
      "sent",
      "REQUEST_ID_REUSED",
      "sent",
    ]);
  });

  // protects [Retention] src/application/stages/1-create/answer-existing.ts, src/application/detours/intake.ts, src/adapters/postgres/stores/loads.ts
  it("refuses a late repeat of a deleted request in a caller's database transaction", async () => {
    const pool = new Pool({ connectionString: database.url, max: 1 });
    const client = await pool.connect();
    await client.query("BEGIN");
    // Two requests repeat request ids that were used before: one could be sent, the other exceeds the balance. In both
    // cases the caller must learn that the request id was already used.
    const sent = [await fencepost.send(transfer(0, "old"), { client }), await fencepost.send(dear, { client })];
    await client.query("COMMIT");
    client.release();
    await pool.end();
    for (const { txId } of sent) {
      const refused = await fencepost.waitFor(txId, { timeoutMs: 30_000 });
      expect(refused).toMatchObject({ state: "FAILED_FINAL", subState: "REQUEST_ID_REUSED", nonce: null });
      expect(refused.lastError).toContain("kept no more");
    }
    await expect(fencepost.send(transfer(0, "old")), "nor is it the refused one's now").rejects.toMatchObject(REFUSED);
  });

  it("returns the feed's new start to a reader whose position was deleted", async () => {
    const below = fencepost.completionsPage({ after: truncatedAt - 1 });
    await expect(below).rejects.toMatchObject({ code: "FEED_TRUNCATED", status: 410, resumeAfter: truncatedAt });
    const sent = await fencepost.send(transfer(7, "young"));
    await fencepost.waitFor(sent.txId, { timeoutMs: 30_000 });
    const { items } = await fencepost.completionsPage({ after: truncatedAt });
    expect(items[0]?.seq).toBe(truncatedAt + 1);
    expect(items.map(({ txId }) => txId)).toContain(sent.txId);
  });
});
