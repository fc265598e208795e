/** Nodes that send no heartbeat for a long time, and nodes with wrong clocks. */
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { auditCluster } from "../../support/cluster/auditor.ts";
import {
  type Cluster,
  type ClusterNode,
  countByNode,
  instancesOf,
  LEASE_MS,
  metric,
  SIGNERS,
} from "../../support/cluster/cluster.ts";
import { createAnywhere, createOn } from "../../support/cluster/creates.ts";
import { it } from "../../support/cluster/own-postgres.ts";
import { terms } from "../../support/cluster/tripwires.ts";
import type { Database } from "../../support/integration.ts";
import { startLoad } from "../../support/load.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { range } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

function inTurn(nodes: readonly ClusterNode[]): PersistentCaller {
  let turn = 0;
  return new PersistentCaller(() => (nodes[turn++ % nodes.length] as ClusterNode).client);
}

describe("after a database outage longer than all leases", () => {
  it("lanes are spread evenly over the nodes again", async ({ cluster, postgres }) => {
    const nodes = await cluster.startAll(3);
    await cluster.untilSpread(nodes);
    const caller = inTurn(nodes);
    const accepted = [...(await caller.sendBatch(range(60).map(createAnywhere)))];
    const before = await terms(cluster.database);
    await postgres.stop();
    const downMs = systemClock.monotonicMs();
    await waitUntil(() => systemClock.monotonicMs() - downMs > LEASE_MS, "every lease has run out");
    await postgres.start();
    const owners = await cluster.untilSpread(nodes);
    expect([...countByNode(owners).values()].sort()).toEqual([6, 7, 7]);
    accepted.push(...(await caller.sendBatch(range(60).map(createOn(SIGNERS, "after")))));
    let begun = 0;
    for (const node of nodes) {
      const instances = await instancesOf(cluster, node);
      expect(instances, "it goes on as a new instance").toBeGreaterThan(1);
      begun += instances - 1;
    }
    const taken = (await terms(cluster.database)).slice(before.length);
    // The node that starts first claims every lane and hands the others their share when they start.
    expect(taken.length, "no lane goes to and fro").toBeLessThanOrEqual((begun - 1) * SIGNERS.length);
    expect(await deadlocks(cluster.database)).toBe(0);
    await auditCluster(cluster, accepted);
  });
});

async function deadlocks(database: Database): Promise<number> {
  const sql = "SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()";
  return (await database.query<{ deadlocks: number }>(sql))[0]?.deadlocks ?? Number.NaN;
}

const HOUR_MS = 3_600_000;
const preload = fileURLToPath(new URL("../../support/cluster/shifting-clock.mjs", import.meta.url));
/** Environment variables for a node whose clock jumps, with a lease that does not expire on a crowded machine. */
const jumping = (ms: number) => ({
  variables: { NODE_OPTIONS: `--import ${preload}`, CLOCK_JUMP_MS: String(ms), FENCEPOST_LEASE_DURATION: "20s" },
});

/** The number of heartbeats so far, by instance. */
async function beats({ database }: Cluster): Promise<ReadonlyMap<string, number>> {
  const sql = "SELECT instance_id, counter::int AS counter FROM fencepost.node_instance";
  const rows = await database.query<{ instance_id: string; counter: number }>(sql);
  return new Map(rows.map((row) => [row.instance_id, row.counter]));
}

/**
 * Difference in ms between a node's wall clock, as the node prints it, and the true time; null if the clock has not
 * jumped yet.
 */
function offByMs(node: ClusterNode): number | null {
  const said = /the clock says (\S+)/.exec(node.stdout())?.[1];
  return said === undefined ? null : Date.parse(said) - Date.now();
}

describe("system clocks that jump", () => {
  it("by an hour on two nodes change nothing under load", async ({ cluster }) => {
    const nodes = await Promise.all([cluster.start(jumping(HOUR_MS)), cluster.start(jumping(-HOUR_MS))]);
    const owners = await cluster.untilSpread(nodes);
    const held = await terms(cluster.database);
    const load = startLoad({ caller: inTurn(nodes), request: createAnywhere, workers: 4, batch: 10 });
    await waitUntil(() => load.accepted.length > 50, "the load is in full swing");
    for (const node of nodes) node.signal("SIGUSR2");
    await waitUntil(() => nodes.every((node) => Math.abs(offByMs(node) ?? 0) > HOUR_MS / 2), "both clocks have jumped");
    const before = await beats(cluster);
    const look = async () => [...(await beats(cluster))].every(([id, counter]) => counter > (before.get(id) ?? 0) + 4);
    await waitUntil(look, "each has renewed its lease again and again");
    await load.stop();
    expect(await cluster.owners()).toEqual(owners);
    expect(await terms(cluster.database)).toEqual(held);
    for (const node of nodes) {
      expect(await instancesOf(cluster, node)).toBe(1);
      expect(await metric(node, "fencepost_lease_fenced_total")).toBe(0);
    }
    await auditCluster(cluster, load.accepted);
  });
});
