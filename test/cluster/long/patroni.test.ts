/**
 * Failovers as in production: Patroni and etcd promote a standby, and a fixed address follows the leader.
 */
import { describe, expect, vi } from "vitest";
import { audit, untilSettled } from "../../support/audit.ts";
import { it as base, connect, type Database, SHORT_LEASE } from "../../support/integration.ts";
import { startLoad } from "../../support/load.ts";
import { hasPatroni, NO_PATRONI, type PatroniCluster, startPatroniCluster } from "../../support/patroni.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { pricedTransfer, range } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

vi.setConfig({ testTimeout: 360_000 });

interface Fixtures {
  readonly synchronous: boolean;
  readonly cluster: PatroniCluster;
  readonly database: Database;
}

const it = base.extend<Fixtures>({
  synchronous: true,
  cluster: async ({ skip, synchronous }, use) => {
    skip(!hasPatroni, NO_PATRONI);
    const cluster = await startPatroniCluster({ synchronous });
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
  expect(await epochs(database)).toEqual([
    { epoch: 1, may_have_lost: false },
    { epoch: 2, may_have_lost: false },
  ]);
  await untilSettled(database, load.accepted.length);
  const witnessed = simulated.chain.witness.map(({ hash }) => hash);
  const { stored } = await audit({ database, rpcUrl: simulated.url, witnessed });
  const byId = new Map(stored.map((row) => [row.tx_id, row]));
  for (const { txId, nonce } of load.accepted) expect(byId.get(txId)).toMatchObject({ nonce: String(nonce) });
});

describe("with an asynchronous standby", () => {
  it.scoped({ synchronous: false });

  it("a node stops its lanes when Patroni promotes a standby that lacks commits", async ({
    cluster,
    database,
    simulated,
    nodes,
  }) => {
    const node = await nodes.start(simulated.url, SHORT_LEASE);
    await node.client.sendBatch(range(3).map((index) => pricedTransfer(index)));
    await untilSettled(database, 3);
    await cluster.partStandby();
    const lost = await node.client.sendBatch(range(2).map((index) => pricedTransfer(3 + index)));
    expect(lost.map((answer) => "nonce" in answer && answer.nonce)).toEqual([3, 4]);
    await waitUntil(() => simulated.chain.witness.length === 5, "the network has all five");

    await cluster.killLeader();
    await waitUntil(async () => (await epochs(database)).length === 2, "the node has noticed", PATIENT);
    expect((await epochs(database)).at(-1)).toEqual({ epoch: 2, may_have_lost: true });
    const lanes = "SELECT next_nonce, suspended_by FROM fencepost.lane WHERE reconciled_epoch = 2 AND next_nonce > 0";
    const [lane] = await waitUntil(
      async () => {
        const found = await database.query(lanes);
        return found.length > 0 ? found : null;
      },
      "the lane was compared with the chain",
      PATIENT,
    );
    expect(lane, "mined or pending, the chain counts five").toEqual({ next_nonce: "5", suspended_by: "HISTORY" });
    await expect(node.client.send(pricedTransfer(9))).rejects.toMatchObject({ status: 503, code: "UNAVAILABLE" });
    expect(simulated.chain.witness, "nothing was sent").toHaveLength(5);
  });
});

const PATIENT = { everyMs: 50, giveUpMs: 150_000 };

const epochs = (database: Database) =>
  database.query<{ epoch: number; may_have_lost: boolean }>(
    "SELECT epoch, may_have_lost FROM fencepost.database_history ORDER BY ordinal",
  );
