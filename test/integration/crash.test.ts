/** Runs each row of the table in docs/crashes.md in a real process that is killed at that point. */
import { describe, expect } from "vitest";
import type { CreatedTransaction, FencepostClient } from "../../src/client/index.ts";
import { FAILPOINTS, type Failpoint } from "../../src/ports/failpoints.ts";
import type { SimulatedServer } from "../doubles/simulated-chain/server.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { type Database, it, SHORT_LEASE } from "../support/integration.ts";
import { nodeOnceReady } from "../support/node-process.ts";
import { BESIDE_THE_ROAD } from "../support/nonce-failpoints.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const COUNT = 12;

/** For some failpoints: makes the chain behave so that a node reaches the failpoint. */
const PROVOKE: Partial<Record<Failpoint, (chain: SimulatedServer, database: Database) => Promise<void>>> = {
  "resubmit.claimed": async ({ faults }) => {
    faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction", times: 3 });
  },
  "another.signed": raiseOnArrival,
  "another.committed": raiseOnArrival,
  "withdraw.committed": async ({ chain }, database) => {
    const block = await waitUntil(() => firstBlockMined(database), "a receipt is stored");
    chain.reorg(chain.head.number - block + 1, { drop: "all", keepInPool: false });
  },
};

/**
 * Raises the base fee when the first transaction arrives: a transaction priced earlier is then too cheap and is
 * repriced.
 */
async function raiseOnArrival({ chain }: SimulatedServer): Promise<void> {
  const unsubscribe = chain.subscribe((event) => {
    if (event.type !== "arrival") return;
    unsubscribe();
    chain.setBaseFee(6_000_000_000n);
  });
}

async function firstBlockMined(database: Database): Promise<number | null> {
  const rows = await database.query<{ first: number | null }>(
    "SELECT min(block_number)::int AS first FROM fencepost.receipt",
  );
  return rows[0]?.first ?? null;
}

/**
 * Failpoints, each with the number of the passage at which the process is killed. At passage 1, a stage does its work
 * for the first time. Passage 2 comes with a second wave of requests, when transactions are at all stages.
 */
const PASSAGES: readonly (readonly [Failpoint, number])[] = [
  ...FAILPOINTS.filter((name) => !BESIDE_THE_ROAD.includes(name)).map((name) => [name, 1] as const),
  ["allocate.committed", 2],
  ["sign.committed", 2],
  ["broadcast.sent", 2],
];

/** Sends the requests in two waves. The second wave begins when the chain's node has accepted the first. */
async function createInWaves(caller: PersistentCaller, database: Database): Promise<readonly CreatedTransaction[]> {
  const wave = (from: number) => Promise.all(range(COUNT / 2).map((index) => caller.send(transfer(from + index))));
  const first = await wave(0);
  const unsent = "SELECT 1 FROM fencepost.transaction WHERE coalesce(sub_state, state) IN ('ALLOCATED', 'PENDING')";
  await waitUntil(async () => (await database.query(unsent)).length === 0, "the first wave is on its way");
  return [...first, ...(await wave(COUNT / 2))];
}

describe("after a node is killed, another node finishes every transaction once", () => {
  it.for(PASSAGES)(
    "(killed at failpoint %s, pass number %i)",
    { concurrent: true },
    async ([failpoint, passage], { database, simulated, nodes }) => {
      let serving: FencepostClient | null = null;
      const variables = { ...SHORT_LEASE, FENCEPOST_RESUBMIT_INTERVAL: "1s" };
      const doomed = nodes.crashing(failpoint, simulated.url, { ...variables, passage: String(passage) });
      await nodeOnceReady(doomed).then(
        ({ client }) => {
          serving = client;
        },
        () => undefined, // At the failpoint lease.acquired, the node dies before it is ready.
      );
      const creating = createInWaves(new PersistentCaller(() => serving), database);
      await PROVOKE[failpoint]?.(simulated, database);
      expect(await doomed.exited, doomed.stderr()).toEqual({ code: null, signal: "SIGKILL" });
      serving = (await nodes.start(simulated.url, variables)).client;
      const created = await creating;
      await untilSettled(database, COUNT);
      const witnessed = simulated.chain.witness.map(({ hash }) => hash);
      const { mined, stored } = await audit({ database, rpcUrl: simulated.url, witnessed });
      expect(new Set(mined.map(({ value }) => value)).size).toBe(COUNT);
      expect(stored.map(({ state, nonce }) => ({ state, nonce }))).toEqual(
        range(COUNT).map((nonce) => ({ state: "CONFIRMED", nonce: String(nonce) })),
      );
      expect(new Set(created.map(({ txId }) => txId))).toEqual(new Set(stored.map(({ tx_id }) => tx_id)));
    },
  );
});
