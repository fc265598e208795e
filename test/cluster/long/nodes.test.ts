/** Two nodes, one database, one signer: only one acts, whatever happens to it. */

import { availableParallelism, loadavg } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Client } from "pg";
import { describe, expect } from "vitest";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { FencepostClient } from "../../../src/client/index.ts";
import type { SimulatedServer } from "../../doubles/simulated-chain/server.ts";
import { audit, untilSettled } from "../../support/audit.ts";
import { type Database, it, type Nodes, SHORT_LEASE, SIGNER } from "../../support/integration.ts";
import { startLoad } from "../../support/load.ts";
import type { NodeProcess, Variables } from "../../support/node-process.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { parseExposition } from "../../support/prometheus-text.ts";
import { pricedTransfer, range, transfer } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const LEASE_MS = 3_000;

interface Pair {
  readonly owner: NodeProcess;
  readonly other: NodeProcess;
}

interface Site {
  readonly nodes: Nodes;
  readonly database: Database;
  readonly simulated: SimulatedServer;
}

/** Whoever owns the signer's lane, and the one that owns the other. */
async function startPair({ nodes, database, simulated }: Site, variables: Variables = SHORT_LEASE): Promise<Pair> {
  const first = await nodes.start(simulated.url, variables);
  const second = await nodes.start(simulated.url, variables);
  await waitUntil(async () => (await owners(database)).size === 2, "each node has its share of the lanes");
  const ownerId = await ownerOf(database);
  return ownerId === first.nodeId ? { owner: first, other: second } : { owner: second, other: first };
}

async function ownerOf(database: Database): Promise<string | null> {
  const rows = await database.query<{ node_id: string }>(
    `SELECT n.node_id FROM fencepost.lane l JOIN fencepost.node_instance n ON n.instance_id = l.owner_instance
     WHERE l.signer = $1 AND NOT n.dead`,
    [SIGNER.toLowerCase()],
  );
  return rows[0]?.node_id ?? null;
}

async function owners(database: Database): Promise<ReadonlySet<string>> {
  const sql = "SELECT owner_instance AS owner FROM fencepost.lane WHERE owner_instance IS NOT NULL";
  return new Set((await database.query<{ owner: string }>(sql)).map(({ owner }) => owner));
}

const auditOf = (database: Database, { chain, url }: SimulatedServer) =>
  audit({ database, rpcUrl: url, witnessed: chain.witness.map(({ hash }) => hash) });

async function metric({ url }: NodeProcess, name: string): Promise<number> {
  const { samples } = parseExposition(await (await fetch(`${url}/metrics`)).text());
  return samples.filter((sample) => sample.name === name).reduce((sum, { value }) => sum + value, 0);
}

async function tokenOf(database: Database): Promise<number> {
  const sql = "SELECT token::int AS token FROM fencepost.lane WHERE signer = $1";
  return (await database.query<{ token: number }>(sql, [SIGNER.toLowerCase()]))[0]?.token ?? 0;
}

/** Asks whichever node takes it, as a load balancer would. */
function anyOf({ owner, other }: Pair): () => FencepostClient {
  let turn = 0;
  return () => (turn++ % 2 === 0 ? owner : other).client;
}

describe("two nodes on one signer", () => {
  it("the one that does not own it says who does, and takes nothing", async ({ simulated, nodes, database }) => {
    const { owner, other } = await startPair({ nodes, database, simulated }, { FENCEPOST_MODE: "basic" });
    const refused = await fetch(`${other.url}/api/v1/tx`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(transfer(0)),
    });
    expect(refused.status).toBe(409);
    expect(refused.headers.get("fencepost-owner")).toBe(owner.url);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ code: "NOT_LEADER", ownerUrl: owner.url });
    const { txId } = await owner.client.send(transfer(0));
    // Reads are everybody's; so is the feed, also for what another node completed.
    const page = await other.client.completionsPage({ after: 0, wait: 20 });
    expect(page.items).toMatchObject([{ txId, state: "CONFIRMED" }]);
    expect(await other.client.get(txId)).toMatchObject({ state: "CONFIRMED" });
    expect(await metric(owner, "fencepost_lease_held")).toBe(1);
    expect(await metric(other, "fencepost_lease_held")).toBe(1);
    await auditOf(database, simulated);
  });

  it("kill -9 of the owner: the other accepts within lease duration + 1 s, and finishes what was under way", async ({
    simulated,
    nodes,
    database,
  }) => {
    const { owner, other } = await startPair({ nodes, database, simulated });
    const created = await owner.client.sendBatch(range(40).map((index) => pricedTransfer(index)));
    expect(created.map(({ status }) => status)).toEqual(range(40).map(() => 202));
    const token = await tokenOf(database);
    const lag = monitorEventLoopDelay({ resolution: 10 });
    lag.enable();
    owner.signal("SIGKILL");
    const killedMs = systemClock.monotonicMs();
    const caller = new PersistentCaller(() => other.client, 20);
    const next = await caller.send(transfer(100));
    const tookMs = systemClock.monotonicMs() - killedMs;
    // What the machine kept even this process waiting is not the node's, nor is its share of a processor that others
    // use as well. The bar itself is kept to the millisecond where time is ours: test/application/takeover.test.ts.
    const crowding = Math.max(1, loadavg()[0] as number) / availableParallelism();
    expect(tookMs).toBeLessThan(LEASE_MS + 1_000 * Math.max(1, crowding) + 2 * (lag.max / 1e6));
    expect(next.nonce).toBe(created.length);
    expect(await tokenOf(database)).toBe(token + 1);
    await untilSettled(database, created.length + 1);
    await auditOf(database, simulated);
  });

  it("a lane that somebody had locked when its owner was declared dead is taken over once it is let go", async ({
    simulated,
    nodes,
    database,
  }) => {
    const { owner, other } = await startPair({ nodes, database, simulated });
    simulated.chain.setBaseFee(10n ** 12n);
    await owner.client.sendBatch(range(5).map((index) => pricedTransfer(index)));
    const operator = new Client({ connectionString: database.url });
    await operator.connect();
    await operator.query("BEGIN");
    await operator.query("SELECT 1 FROM fencepost.lane FOR NO KEY UPDATE");
    owner.signal("SIGKILL");
    const beats = async () => {
      const sql = "SELECT counter::int AS counter FROM fencepost.node_instance WHERE node_id = $1 AND NOT dead";
      return (await database.query<{ counter: number }>(sql, [other.nodeId]))[0]?.counter ?? 0;
    };
    const dead = "SELECT 1 FROM fencepost.node_instance WHERE node_id = $1 AND dead";
    await waitUntil(async () => (await database.query(dead, [owner.nodeId])).length > 0, "the owner is declared dead");
    const declaredAt = await beats();
    await waitUntil(async () => (await beats()) > declaredAt + 2, "the other has looked for free lanes meanwhile");
    await operator.query("ROLLBACK");
    await operator.end();
    simulated.chain.setBaseFee(10n ** 9n);
    await untilSettled(database, 5, { giveUpMs: 20_000 });
    await auditOf(database, simulated);
  });

  it("SIGTERM of the owner: the other takes over by itself, without a request and without waiting for the lease", async ({
    simulated,
    nodes,
    database,
  }) => {
    const { owner, other } = await startPair({ nodes, database, simulated });
    // Nothing is mined until the owner is gone.
    simulated.chain.setBaseFee(10n ** 12n);
    await owner.client.sendBatch(range(20).map((index) => pricedTransfer(index)));
    owner.signal("SIGTERM");
    expect(await owner.exited).toEqual({ code: 0, signal: null });
    simulated.chain.setBaseFee(10n ** 9n);
    await untilSettled(database, 20);
    expect(await metric(other, "fencepost_lease_held")).toBe(2);
    await auditOf(database, simulated);
  });

  it("SIGSTOP of the owner past its lease, under load: taken over, and fenced when it wakes", async ({
    simulated,
    nodes,
    database,
  }) => {
    const { owner, other } = await startPair({ nodes, database, simulated });
    const caller = new PersistentCaller(() => owner.client);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
    await waitUntil(() => load.accepted.length > 100, "the owner is busy");
    const token = await tokenOf(database);
    owner.signal("SIGSTOP");
    const onOther = new PersistentCaller(() => other.client);
    const taken = await onOther.send(pricedTransfer(0, "other"));
    expect(await tokenOf(database)).toBe(token + 1);
    const witnessedAt = simulated.chain.witness.length;
    await onOther.sendBatch(range(20).map((index) => pricedTransfer(index + 1, "other")));
    owner.signal("SIGCONT");
    await waitUntil(async () => {
      const fenced = await metric(owner, "fencepost_lease_fenced_total");
      const instances = await database.query("SELECT 1 FROM fencepost.node_instance WHERE node_id = $1", [
        owner.nodeId,
      ]);
      return fenced > 0 || instances.length > 1;
    }, "the old owner knows that it is over");
    // Its callers, who were waiting all along, are sent to the new owner, and repeat there.
    caller.current = () => other.client;
    await load.stop();
    expect(simulated.chain.witness.length).toBeGreaterThan(witnessedAt);
    const count = load.accepted.length + 21;
    await untilSettled(database, count);
    const { stored } = await auditOf(database, simulated);
    expect(stored).toHaveLength(count);
    expect(taken.nonce).toBeGreaterThan(100);
    // What wakes up is another instance, and gets a share like anybody who joins.
    await waitUntil(async () => (await metric(owner, "fencepost_lease_held")) === 1, "the old owner has joined again");
  });

  it("an owner that is wide awake and believes in its lease is fenced all the same, once it is declared dead", async ({
    simulated,
    nodes,
    database,
  }) => {
    // Its heart beats so slowly that the other, by its own patience, sees it stand still. Nothing stops it but the fence.
    const owner = await nodes.start(simulated.url, {
      FENCEPOST_LEASE_DURATION: "5m",
      FENCEPOST_LEASE_RENEW_INTERVAL: "2m",
      FENCEPOST_IN_FLIGHT_WINDOW: "512",
    });
    const caller = new PersistentCaller(() => owner.client);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
    const other = await nodes.start(simulated.url, SHORT_LEASE);
    const onOther = new PersistentCaller(() => other.client);
    await onOther.sendBatch(range(20).map((index) => pricedTransfer(index, "other")));
    await waitUntil(
      async () => (await metric(owner, "fencepost_lease_fenced_total")) > 0,
      "a write of the old owner was refused",
    );
    caller.current = () => other.client;
    await load.stop();
    const count = load.accepted.length + 20;
    await untilSettled(database, count);
    await auditOf(database, simulated);
    expect(await ownerOf(database)).toBe(other.nodeId);
    expect(other.stderr()).toContain("stood-still");
  });

  it("owners that come and go, asked in turn: each request once, nonces without a gap", async ({
    simulated,
    nodes,
    database,
  }) => {
    let pair = await startPair({ nodes, database, simulated });
    let ask = anyOf(pair);
    const caller = new PersistentCaller(() => ask());
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const before = load.accepted.length;
      await waitUntil(() => load.accepted.length > before + 50, "requests are accepted");
      pair.owner.signal(signal);
      await pair.owner.exited;
      pair = { owner: pair.other, other: await nodes.start(simulated.url, SHORT_LEASE) };
      ask = anyOf(pair);
    }
    const before = load.accepted.length;
    await waitUntil(() => load.accepted.length > before + 50, "requests are accepted again");
    await load.stop();
    await untilSettled(database, load.accepted.length);
    await auditOf(database, simulated);
  });
});
