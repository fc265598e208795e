import { describe, expect } from "vitest";
import type { FencepostClient } from "../../src/client/index.ts";
import { type DevChain, startEmbeddedChain } from "../../src/main/dev/embedded/start-chain.ts";
import { audit, minedTransactions, untilAtRest, untilSettled } from "../support/audit.ts";
import { type Database, it } from "../support/integration.ts";
import { range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const COUNT = 6;
const DEPTH = 3;

/** A real EVM that mines only when the test says so. */
const onStillChain = it.extend<{ still: DevChain }>({
  still: async ({ task: _ }, use) => {
    const chain = await startEmbeddedChain();
    await use(chain);
    await chain.stop();
  },
});

async function statesOf(database: Database): Promise<readonly string[]> {
  const sql = "SELECT coalesce(sub_state, state) AS state FROM fencepost.transaction ORDER BY nonce";
  return (await database.query<{ state: string }>(sql)).map(({ state }) => state);
}

const untilAll = (database: Database, state: string, count = COUNT) =>
  waitUntil(async () => {
    const states = await statesOf(database);
    return states.length === count && states.every((each) => each === state);
  }, `all are ${state}`);

/** Mines two transactions in each of three blocks. Returns a snapshot from before them. */
async function mineThreeBlocks(still: DevChain, client: FencepostClient, database: Database): Promise<unknown> {
  const snapshot = await still.rpc("evm_snapshot");
  for (const block of range(DEPTH)) {
    await client.sendBatch([transfer(2 * block), transfer(2 * block + 1)]);
    await waitUntil(async () => {
      const states = await statesOf(database);
      return states.slice(2 * block).every((state) => state === "BROADCAST");
    }, "the node has taken them");
    await still.mine();
  }
  return snapshot;
}

/** Reverts to the snapshot, whose mempool was empty, and mines other blocks on top of it. */
async function dropBlocks(still: DevChain, snapshot: unknown): Promise<void> {
  await still.rpc("evm_revert", [snapshot]);
  await still.rpc("hardhat_setCoinbase", [`0x${"c0".repeat(20)}`]);
  await still.mine(DEPTH + 1);
  expect(await minedTransactions(still.url), "the chain has forgotten them").toEqual([]);
}

/** Mines further blocks until everything is settled. */
async function mineUntilSettled(still: DevChain, database: Database): Promise<void> {
  await waitUntil(async () => {
    await still.mine();
    return (await statesOf(database)).every((state) => state === "CONFIRMED");
  }, "all are confirmed again");
  await untilSettled(database, COUNT);
}

async function noncesByRequest(database: Database): Promise<readonly unknown[]> {
  return database.query("SELECT request_id, nonce, tx_id FROM fencepost.transaction ORDER BY nonce");
}

describe("a 3-deep reorg on a real EVM that drops mined transactions", () => {
  onStillChain(
    "withdraws receipts that were not final: CONFIRMED later, same nonces, one completion each",
    async ({ still, nodes, database }) => {
      const { client } = await nodes.start(still.url, { FENCEPOST_CONFIRMATIONS: "5" });
      const snapshot = await mineThreeBlocks(still, client, database);
      await untilAll(database, "MINED");
      const before = await noncesByRequest(database);
      await dropBlocks(still, snapshot);
      await waitUntil(async () => !(await statesOf(database)).includes("MINED"), "every receipt is withdrawn");
      await mineUntilSettled(still, database);
      expect(await noncesByRequest(database)).toEqual(before);
      const { completions } = await audit({ database, rpcUrl: still.url });
      expect(completions.map(({ state }) => state)).toEqual(range(COUNT).map(() => "CONFIRMED"));
      const { history = [] } = await client.get((await client.list({ limit: 1 })).items[0]?.txId as string, {
        include: ["history"],
      });
      expect(history.map(({ event }) => event)).toEqual(
        expect.arrayContaining(["mine", "withdraw", "resubmit", "confirm"]),
      );
    },
  );

  onStillChain(
    "that were CONFIRMED: the feed says REORGED, unsettled, then CONFIRMED again with the same nonces",
    async ({ still, nodes, database }) => {
      const { client } = await nodes.start(still.url, { FENCEPOST_CONFIRMATIONS: "0" });
      const snapshot = await mineThreeBlocks(still, client, database);
      await untilAll(database, "CONFIRMED");
      const before = await noncesByRequest(database);
      await dropBlocks(still, snapshot);
      await waitUntil(
        async () => (await client.completionsPage({ after: COUNT })).items.length >= COUNT,
        "REORGED is said",
      );
      await mineUntilSettled(still, database);
      expect(await noncesByRequest(database)).toEqual(before);
      const { completions } = await audit({ database, rpcUrl: still.url });
      const said = completions.map(({ state, settled }) => `${state} ${settled}`);
      expect(said).toEqual([
        ...range(COUNT).map(() => "CONFIRMED true"),
        ...range(COUNT).map(() => "REORGED false"),
        ...range(COUNT).map(() => "CONFIRMED true"),
      ]);
    },
  );
});

describe("a 3-deep reorg under load", () => {
  it.for(["forgets", "keeps in its pool"] as const)(
    "ends with all transactions CONFIRMED if the chain's node %s the dropped transactions",
    async (pool, { simulated, nodes, database }) => {
      const { client } = await nodes.start(simulated.url, { FENCEPOST_CONFIRMATIONS: "2" });
      const followed: number[] = [];
      const consumer = new AbortController();
      const consuming = (async () => {
        for await (const { seq } of client.completions({ after: 0 }, { signal: consumer.signal })) followed.push(seq);
      })().catch(() => undefined);
      let reorgs = 0;
      for (const round of range(4)) {
        await client.sendBatch(range(COUNT).map((index) => transfer(round * COUNT + index)));
        const settled = `SELECT 1 FROM fencepost.transaction WHERE state = 'CONFIRMED' HAVING count(*) > ${round * COUNT}`;
        await waitUntil(async () => (await database.query(settled)).length > 0, "some of this round are final");
        const [last] = await database.query<{ number: number }>(
          "SELECT max(block_number)::int AS number FROM fencepost.receipt",
        );
        const depth = Math.max(DEPTH, simulated.chain.head.number - (last?.number ?? 0) + 1);
        const displaced = range(depth).flatMap(
          (up) => simulated.chain.blocks.byNumber(simulated.chain.head.number - up)?.transactions ?? [],
        );
        reorgs += displaced.length;
        simulated.chain.reorg(depth, { drop: "all", keepInPool: pool === "keeps in its pool" });
      }
      expect(reorgs, "something was mined and dropped").toBeGreaterThan(0);
      await untilAtRest({ database, rpcUrl: simulated.url }, 4 * COUNT);
      const witnessed = simulated.chain.witness.map(({ hash }) => hash);
      const { completions, stored } = await audit({ database, rpcUrl: simulated.url, witnessed });
      expect(stored.map(({ nonce }) => Number(nonce))).toEqual(range(4 * COUNT));
      expect(completions.filter(({ state }) => state === "REORGED").length).toBeGreaterThan(0);
      await waitUntil(() => followed.length === completions.length, "the consumer has seen all of it");
      consumer.abort();
      await consuming;
      expect(followed).toEqual(completions.map(({ seq }) => Number(seq)));
    },
  );
});
