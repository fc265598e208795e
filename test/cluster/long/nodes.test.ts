/** Two nodes on one database, each with one lane: only one node acts for a signer, whatever happens to that node. */
import { Client } from "pg";
import { describe, expect } from "vitest";
import type { FencepostClient } from "../../../src/client/index.ts";
import { auditCluster } from "../../support/cluster/auditor.ts";
import { type Cluster, type ClusterNode, it, keysOf, metric, SIGNERS } from "../../support/cluster/cluster.ts";
import { createOn } from "../../support/cluster/creates.ts";
import { startLoad } from "../../support/load.ts";
import type { Variables } from "../../support/node-process.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { range } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const PAIR = SIGNERS.slice(0, 2);
const SIGNER = PAIR[0] as (typeof SIGNERS)[number];
const create = createOn([SIGNER]);

interface Pair {
  readonly owner: ClusterNode;
  readonly other: ClusterNode;
}

/** Starts two nodes: the one that owns the signer's lane, and the one that owns the other lane. */
async function startPair(cluster: Cluster, variables: Variables = {}): Promise<Pair> {
  const nodes = await cluster.startAll(2, { variables: { ...keysOf(PAIR), ...variables } });
  const [first, second] = nodes as [ClusterNode, ClusterNode];
  const owners = await cluster.untilSpread(nodes, PAIR.length);
  return owners.get(SIGNER) === first.nodeId ? { owner: first, other: second } : { owner: second, other: first };
}

/** Sends to any node that responds, as a load balancer would. */
function anyOf({ owner, other }: Pair): () => FencepostClient {
  let turn = 0;
  return () => (turn++ % 2 === 0 ? owner : other).client;
}

/**
 * Raises the base fee above the fees that the creates of this file offer, so that nothing is mined until the returned
 * function is called.
 */
function holdMining({ chain: { chain } }: Cluster): () => void {
  chain.setBaseFee(30n * 10n ** 9n);
  return () => chain.setBaseFee(10n ** 9n);
}

describe("with two nodes for one signer,", () => {
  it("the node that does not own the signer's lane accepts no create", async ({ cluster }) => {
    const { owner, other } = await startPair(cluster, { FENCEPOST_MODE: "basic" });
    const refused = await fetch(`${other.url}/api/v1/tx`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(create(0)),
    });
    expect(refused.status).toBe(409);
    expect(refused.headers.get("fencepost-owner")).toBe(owner.url);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ code: "NOT_LEADER", ownerUrl: owner.url });
    const accepted = await owner.client.send(create(0));
    // Every node serves reads, including the feed entries of transactions that another node completed.
    const page = await other.client.completionsPage({ after: 0, wait: 20 });
    expect(page.items).toMatchObject([{ txId: accepted.txId, state: "CONFIRMED" }]);
    expect(await other.client.get(accepted.txId)).toMatchObject({ state: "CONFIRMED" });
    expect(await metric(owner, "fencepost_lease_held")).toBe(1);
    expect(await metric(other, "fencepost_lease_held")).toBe(1);
    await auditCluster(cluster, [accepted]);
  });

  it("the other node takes over a dead owner's lane once the lane's row is unlocked", async ({ cluster }) => {
    const { owner, other } = await startPair(cluster);
    const { database } = cluster;
    const mineAgain = holdMining(cluster);
    const accepted = await new PersistentCaller(() => owner.client).sendBatch(range(5).map(create));
    const operator = new Client({ connectionString: database.url });
    operator.on("error", () => undefined);
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
    mineAgain();
    await auditCluster(cluster, accepted);
  });

  it("SIGTERM of the owner hands over the lane before the lease expires", async ({ cluster }) => {
    const { owner, other } = await startPair(cluster);
    const mineAgain = holdMining(cluster);
    const accepted = await new PersistentCaller(() => owner.client).sendBatch(range(20).map(create));
    owner.signal("SIGTERM");
    expect(await owner.exited).toEqual({ code: 0, signal: null });
    mineAgain();
    await auditCluster(cluster, accepted);
    expect(await metric(other, "fencepost_lease_held")).toBe(2);
  });

  it("a running owner is fenced once the other node declares the owner dead", async ({ cluster }) => {
    // The owner sends a heartbeat every two minutes, but the test changes its row to promise one every three seconds.
    // So the other node declares the running owner dead, and only the fencing token stops the owner's writes.
    const slow = { FENCEPOST_LEASE_DURATION: "5m", FENCEPOST_LEASE_RENEW_INTERVAL: "2m" };
    const owner = await cluster.start({ variables: { ...keysOf([SIGNER]), ...slow } });
    const caller = new PersistentCaller(() => owner.client);
    const load = startLoad({ caller, request: create, workers: 4, batch: 5 });
    const other = await cluster.start({ variables: keysOf([SIGNER]) });
    await cluster.database.query(
      `UPDATE fencepost.node_instance SET heartbeat_at = now() + interval '1 hour', expires_at = now() + interval '1 hour 3 s'
      WHERE node_id = $1`,
      [owner.nodeId],
    );
    const onOther = new PersistentCaller(() => other.client);
    const accepted = await onOther.sendBatch(range(20).map(createOn([SIGNER], "other")));
    await waitUntil(
      async () => (await metric(owner, "fencepost_lease_fenced_total")) > 0,
      "a write of the old owner was refused",
    );
    caller.current = () => other.client;
    await load.stop();
    await auditCluster(cluster, [...load.accepted, ...accepted]);
    expect((await cluster.owners()).get(SIGNER)).toBe(other.nodeId);
    expect(other.stderr()).toContain("stood-still");
  });

  it("every request is executed once although owners start and stop", async ({ cluster }) => {
    let pair = await startPair(cluster);
    let ask = anyOf(pair);
    const caller = new PersistentCaller(() => ask());
    const load = startLoad({ caller, request: create, workers: 4, batch: 5 });
    const untilMore = async (): Promise<void> => {
      const before = load.accepted.length;
      await waitUntil(() => load.accepted.length > before + 50, "requests are accepted");
    };
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await untilMore();
      pair.owner.signal(signal);
      await pair.owner.exited;
      pair = { owner: pair.other, other: await cluster.start({ variables: keysOf(PAIR) }) };
      ask = anyOf(pair);
    }
    await untilMore();
    await load.stop();
    await auditCluster(cluster, load.accepted);
  });
});
