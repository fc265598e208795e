/**
 * A failover as in production: Patroni and etcd promote a synchronous standby, and a fixed address follows the leader.
 */
import { expect, vi } from "vitest";
import { audit, untilSettled } from "../../support/audit.ts";
import { it as base, connect, type Database, SHORT_LEASE } from "../../support/integration.ts";
import { startLoad } from "../../support/load.ts";
import { hasPatroni, NO_PATRONI, type PatroniCluster, startPatroniCluster } from "../../support/patroni.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { pricedTransfer } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

vi.setConfig({ testTimeout: 360_000 });

const it = base.extend<{ readonly cluster: PatroniCluster; readonly database: Database }>({
  cluster: async ({ skip }, use) => {
    skip(!hasPatroni, NO_PATRONI);
    const cluster = await startPatroniCluster();
    await use(cluster);
    await cluster.remove();
  },
  database: async ({ cluster }, use) => {
    const database = connect(cluster.url);
    await use(database);
    await database.end();
  },
});

it("a node loses no acknowledged create when Patroni replaces a dead leader", async ({
  cluster,
  database,
  simulated,
  nodes,
}) => {
  const { client } = await nodes.start(simulated.url, { ...SHORT_LEASE, FENCEPOST_IN_FLIGHT_WINDOW: "512" });
  const caller = new PersistentCaller(() => client);
  const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 3, batch: 5 });
  await waitUntil(() => load.accepted.length > 50, "the load is in full swing");
  await cluster.killLeader();
  const answered = load.accepted.length;
  await waitUntil(() => load.accepted.length > answered + 20, "accepting again", { everyMs: 50, giveUpMs: 150_000 });
  await load.stop();
  const epochs = await database.query<{ epoch: number; may_have_lost: boolean }>(
    "SELECT epoch, may_have_lost FROM fencepost.database_history ORDER BY ordinal",
  );
  expect(epochs).toEqual([
    { epoch: 1, may_have_lost: false },
    { epoch: 2, may_have_lost: false },
  ]);
  await untilSettled(database, load.accepted.length);
  const witnessed = simulated.chain.witness.map(({ hash }) => hash);
  const { stored } = await audit({ database, rpcUrl: simulated.url, witnessed });
  const byId = new Map(stored.map((row) => [row.tx_id, row]));
  for (const { txId, nonce } of load.accepted) expect(byId.get(txId)).toMatchObject({ nonce: String(nonce) });
});
