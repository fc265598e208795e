import { afterEach, beforeEach, expect, it } from "vitest";
import { UNWATCH_PAGE } from "../../../src/adapters/postgres/commit/lookup.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import type { LaneWrite } from "../../../src/ports/lane-store.ts";
import { commitOne, holdLane, outcomesOf } from "../../support/lane-samples.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
beforeEach(async () => {
  subject = await createPostgresSubject();
});
afterEach(() => subject.close());

async function confirmMany({ chainId, signer }: Lane, count: number): Promise<void> {
  await subject.client.query(
    `INSERT INTO fencepost.transaction (tx_id, chain_id, signer, nonce, state, history_count, last_event, created_at, updated_at)
     SELECT gen_random_uuid(), $1, $2, n, 'CONFIRMED', 1, 'confirm', now(), now() FROM generate_series(1, $3::int) AS n`,
    [chainId, signer, count],
  );
  await subject.client.query(
    `INSERT INTO fencepost.receipt (tx_id, chain_id, tx_hash, block_number, block_hash, transaction_index, status, gas_used)
     SELECT tx_id, chain_id, '0x' || repeat('a', 64), 7, '0x' || repeat('b', 64), 0, 'success', 21000
     FROM fencepost.transaction`,
  );
}

async function countLive(): Promise<number> {
  const { rows } = await subject.client.query<{ live: number }>(
    "SELECT count(*)::int AS live FROM fencepost.transaction WHERE live",
  );
  return rows[0]?.live ?? 0;
}

// protects [Reads] src/adapters/postgres/commit/commit.ts, src/application/writer/waiting-room.ts, src/application/stages/6-finality/finality.ts
it("final transactions are released from the check for reorgs page by page", async () => {
  const store = await subject.connect();
  const fence = await holdLane(store);
  await confirmMany(fence.lane, UNWATCH_PAGE + 1);
  const unwatch: LaneWrite = { kind: "unwatch", fence, throughBlock: 7 };
  const align: LaneWrite = { kind: "align", fence, floor: 5_000 };
  expect(await outcomesOf(store, [unwatch, align])).toEqual([
    { status: "unfinished" },
    { status: "aligned", cursor: 5_000 },
  ]);
  expect(await countLive()).toBe(1);
  expect(await commitOne(store, unwatch)).toEqual({ status: "done" });
  expect(await countLive()).toBe(0);
  await store.close();
});
