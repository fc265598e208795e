/** Tests hints between real nodes: which hints are sent, and that nothing goes wrong without them. */
import { Client } from "pg";
import { describe, expect } from "vitest";
import { createFencepost } from "../../src/index.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { it as base, KEYS, SHORT_LEASE } from "../support/integration.ts";
import { startLoad } from "../support/load.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { pricedTransfer, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const it = base.extend<{ readonly notified: { readonly words: Set<string>; readonly client: Client } }>({
  /** Every hint that was sent, and the connection that received it. */
  notified: async ({ database }, use) => {
    const client = new Client({ connectionString: database.url });
    client.on("error", () => undefined);
    await client.connect();
    const words = new Set<string>();
    client.on("notification", ({ payload = "" }) => {
      for (const word of payload.split(" ")) words.add(word);
    });
    await client.query("LISTEN fencepost");
    await use({ words, client });
    await client.end();
  },
});

const LISTENERS = `FROM pg_stat_activity
  WHERE application_name = 'fencepost wake-ups' AND datname = current_database()`;

describe("nodes that send each other hints (NOTIFY)", () => {
  it("send hints for new completions, new requests and released lanes", async ({
    database,
    simulated,
    nodes,
    notified,
  }) => {
    const node = await nodes.start(simulated.url, SHORT_LEASE);
    await node.client.send(transfer(0));
    await waitUntil(() => notified.words.has("completions"), "completions are told of");
    const embedded = await createFencepost({
      databaseUrl: database.url,
      chains: [{ rpc: simulated.url, confirmations: 2, pollInterval: "100ms" }],
      signers: [KEYS[0]],
    });
    await notified.client.query("BEGIN");
    await embedded.send(transfer(1), { client: notified.client });
    await notified.client.query("COMMIT");
    await waitUntil(() => notified.words.has("intake"), "intents are told of");
    await untilSettled(database, 2);
    await embedded.close();
    notified.words.clear();
    node.signal("SIGTERM");
    await node.exited;
    await waitUntil(() => notified.words.has("lanes"), "lanes are told of");
  });

  it("also work if hints are disabled", async ({ database, simulated, nodes, notified }) => {
    const node = await nodes.start(simulated.url, { ...SHORT_LEASE, FENCEPOST_NOTIFICATIONS: "off" });
    await node.client.send(transfer(0));
    await untilSettled(database, 1);
    expect(await database.query(`SELECT 1 ${LISTENERS}`)).toEqual([]);
    node.signal("SIGTERM");
    await node.exited;
    await notified.client.query("SELECT 1");
    expect([...notified.words]).toEqual([]);
  });

  it("lose nothing when their listening connections are cut repeatedly", async ({ database, simulated, nodes }) => {
    const settings = { ...SHORT_LEASE, FENCEPOST_IN_FLIGHT_WINDOW: "512" };
    const alive = [await nodes.start(simulated.url, settings), await nodes.start(simulated.url, settings)];
    let turn = 0;
    const caller = new PersistentCaller(() => alive[turn++ % 2]?.client ?? null);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 2, batch: 5 });
    for (let cuts = 0; cuts < 3; cuts++) {
      await waitUntil(async () => (await database.query(`SELECT 1 ${LISTENERS}`)).length === 2, "both listen");
      await database.query(`SELECT pg_terminate_backend(pid) ${LISTENERS}`);
    }
    await load.stop();
    expect(caller.refusals).toEqual([]);
    await untilSettled(database, load.accepted.length);
    await audit({ database, rpcUrl: simulated.url, witnessed: simulated.chain.witness.map(({ hash }) => hash) });
  });
});
