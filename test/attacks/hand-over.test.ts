/** Nodes join and leave under load, with an endpoint whose sends take longer than a hand-over may take. */
import { afterEach, describe, expect } from "vitest";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { SimulatedServer } from "../doubles/simulated-chain/server.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { crowding } from "../support/crowding.ts";
import { type Database, it, OTHER_SIGNER, SIGNER } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { blocksLater, type SlowEndpoint, startSlowEndpoint } from "../support/slow-endpoint.ts";
import { pricedTransfer, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const RELEASED_WITHIN_MS = 250;

let endpoint: SlowEndpoint;
afterEach(() => endpoint.close());

/** Sends one create after another to each node, for each signer. No create is ever repeated. */
function keepCreating(simulated: SimulatedServer, targets: () => readonly NodeProcess[]) {
  const failures: string[] = [];
  let [accepted, wanted, serial] = [0, true, 0];
  const caller = async (at: number): Promise<void> => {
    for (let turn = at; wanted; turn++) {
      const nodes = targets();
      const { client } = nodes[turn % nodes.length] as NodeProcess;
      const signer = turn % 3 === 0 ? OTHER_SIGNER : SIGNER;
      try {
        // For every second create, the node has to query the chain first; by then the lane may have moved to another
        // node.
        const request = turn % 2 === 0 ? pricedTransfer : transfer;
        await client.send({ ...request(serial++, `caller-${at}`), signer });
        accepted++;
      } catch (error) {
        failures.push(String(error));
      }
      await blocksLater(simulated, 1);
    }
  };
  const ended = Promise.all([0, 1, 2, 3].map(caller));
  return {
    failures,
    accepted: () => accepted,
    stop: async () => {
      wanted = false;
      await ended;
    },
  };
}

async function owners(database: Database): Promise<readonly (string | null)[]> {
  const rows = await database.query<{ node: string | null }>(
    `SELECT i.node_id AS node FROM fencepost.lane l LEFT JOIN fencepost.node_instance i ON i.instance_id = l.owner_instance`,
  );
  return rows.map(({ node }) => node);
}

const holds = async (database: Database, { nodeId }: NodeProcess) => (await owners(database)).includes(nodeId);

describe("a lane whose sends hang for eight seconds", () => {
  // protects [Processes that end, and those that only seem to] src/application/lane/lanes.ts, src/application/loops/node.ts
  it("is handed over at once when a node joins or leaves", async ({ simulated, nodes, database }) => {
    endpoint = await startSlowEndpoint(simulated.url);
    const first = await nodes.start(endpoint.url);
    let targets = [first];
    const creating = keepCreating(simulated, () => targets);
    await waitUntil(() => creating.accepted() > 10, "creates flow");
    endpoint.sendMs = 8_000;
    await waitUntil(() => endpoint.arrivals.length > 0, "sends hang");
    const second = await nodes.start(endpoint.url);
    targets = [first, second];
    await waitUntil(() => holds(database, second), "the node that joined has its share");
    const before = creating.accepted();
    await waitUntil(() => creating.accepted() > before + 20, "creates go on");
    targets = [second];
    const signalledMs = systemClock.monotonicMs();
    first.signal("SIGTERM");
    await waitUntil(async () => !(await holds(database, first)), "its lanes are released", { everyMs: 5 });
    expect(systemClock.monotonicMs() - signalledMs).toBeLessThanOrEqual(RELEASED_WITHIN_MS * crowding());
    const released = creating.accepted();
    await waitUntil(() => creating.accepted() > released + 20, "creates go on");
    await creating.stop();
    expect(creating.failures).toEqual([]);
    endpoint.sendMs = 0;
    await untilSettled(database, creating.accepted());
    await audit({ database, rpcUrl: simulated.url, witnessed: simulated.chain.witness.map(({ hash }) => hash) });
  });

  // protects [Processes that end, and those that only seem to] src/application/lane/lanes.ts, src/application/loops/node.ts
  it("is released at once if its only node shuts down", async ({ simulated, nodes, database }) => {
    endpoint = await startSlowEndpoint(simulated.url);
    const node = await nodes.start(endpoint.url);
    endpoint.sendMs = 8_000;
    await node.client.send(pricedTransfer(0));
    await waitUntil(() => endpoint.arrivals.length === 1, "the send hangs");
    const signalledMs = systemClock.monotonicMs();
    node.signal("SIGTERM");
    await waitUntil(async () => !(await holds(database, node)), "its lanes are released", { everyMs: 5 });
    expect(systemClock.monotonicMs() - signalledMs).toBeLessThanOrEqual(RELEASED_WITHIN_MS * crowding());
    endpoint.sendMs = 0;
    await nodes.start(endpoint.url);
    await untilSettled(database, 1);
  });
});
