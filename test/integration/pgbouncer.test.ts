/**
 * Nodes behind PgBouncer in transaction mode: no lasting sessions, no named statements, fewer server connections than
 * clients.
 */
import { describe, expect } from "vitest";
import { audit, untilSettled } from "../support/audit.ts";
import { it as base, type Nodes, nodesOn, SHORT_LEASE } from "../support/integration.ts";
import { startLoad } from "../support/load.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { NO_PGBOUNCER, type PgBouncer, pgbouncerPath, startPgBouncer } from "../support/pgbouncer.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Fixtures {
  readonly pooler: PgBouncer;
  readonly nodes: Nodes;
}

const it = base.extend<Fixtures>({
  pooler: async ({ database, skip }, use) => {
    skip(pgbouncerPath === undefined, NO_PGBOUNCER);
    const pooler = await startPgBouncer(database.url);
    await use(pooler);
    await pooler.stop();
  },
  nodes: async ({ pooler }, use) => {
    const nodes = nodesOn(pooler.url);
    await use(nodes);
    await nodes.killAll();
  },
});

describe("behind PgBouncer", () => {
  it("a node works normally, and reports that LISTEN needs a direct database URL", async ({
    database,
    simulated,
    nodes,
  }) => {
    const node = await nodes.start(simulated.url);
    const single = await node.client.send(transfer(0));
    const batch = await node.client.sendBatch(range(40).map((index) => pricedTransfer(index + 1)));
    expect(batch.every(({ status }) => status === 202)).toBe(true);
    expect(await node.client.send(transfer(0)), "a repeat is known").toMatchObject({ txId: single.txId });
    await untilSettled(database, 41);
    await audit({ database, rpcUrl: simulated.url, witnessed: simulated.chain.witness.map(({ hash }) => hash) });
    await waitUntil(() => (node.stdout() + node.stderr()).includes("NOTIFICATIONS_NEED_DIRECT_URL"), "it says so");
    node.signal("SIGTERM");
    expect((await node.exited).code).toBe(0);
  });

  it("the lanes of a killed node are taken over under load, without any loss", async ({
    database,
    simulated,
    nodes,
  }) => {
    const settings = { ...SHORT_LEASE, FENCEPOST_DIRECT_DATABASE_URL: database.url, FENCEPOST_IN_FLIGHT_WINDOW: "512" };
    const alive = [await nodes.start(simulated.url, settings), await nodes.start(simulated.url, settings)];
    let turn = 0;
    const caller = new PersistentCaller(() => alive[turn++ % alive.length]?.client ?? null);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
    await waitUntil(() => load.accepted.length > 100, "the load is in full swing");
    const listening = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'fencepost wake-ups'";
    expect((await database.query(`${listening} AND datname = current_database()`)).length).toBe(2);
    const owner = await ownerOf(database);
    const victim = alive.findIndex(({ nodeId }) => nodeId === owner);
    for (const killed of alive.splice(victim, 1)) killed.signal("SIGKILL");
    const before = load.accepted.length;
    await waitUntil(() => load.accepted.length > before + 50, "the other node goes on");
    await load.stop();
    await untilSettled(database, load.accepted.length);
    const witnessed = simulated.chain.witness.map(({ hash }) => hash);
    const { stored } = await audit({ database, rpcUrl: simulated.url, witnessed });
    const byId = new Map(stored.map((row) => [row.tx_id, row]));
    for (const { txId, nonce } of load.accepted) expect(byId.get(txId)).toMatchObject({ nonce: String(nonce) });
  });
});

async function ownerOf(database: { query<Row>(sql: string): Promise<readonly Row[]> }): Promise<string | undefined> {
  const [row] = await database.query<{ node_id: string }>(
    `SELECT n.node_id FROM fencepost.lane AS l JOIN fencepost.node_instance AS n ON n.instance_id = l.owner_instance
     WHERE l.next_nonce > 0`,
  );
  return row?.node_id;
}
