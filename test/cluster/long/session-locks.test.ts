/** If the database sessions of a live process end, no node declares it dead. */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { describe, expect } from "vitest";
import { auditCluster } from "../../support/cluster/auditor.ts";
import { type Cluster, type ClusterNode, instancesOf } from "../../support/cluster/cluster.ts";
import { createAnywhere } from "../../support/cluster/creates.ts";
import { it } from "../../support/cluster/own-postgres.ts";
import { crowding } from "../../support/crowding.ts";
import { startLoad } from "../../support/load.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { range } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

/**
 * A lease that does not expire even on a starved machine, so a node could be declared dead only because of its session
 * lock.
 */
const VARIABLES = { FENCEPOST_LEASE_DURATION: "2m", FENCEPOST_LEASE_RENEW_INTERVAL: "3s" };
const PATIENT = { everyMs: 50, giveUpMs: 90_000 };
const BUSY_LOOPS = 4 * availableParallelism();

const LOCKS = "SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted";

/** Waits until every node has published its session lock and holds it. */
async function untilLocked({ database }: Cluster, nodes: number): Promise<void> {
  const published = `SELECT 1 FROM fencepost.node_instance n
    JOIN pg_locks l ON l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.objid::integer = n.session_lock
    WHERE NOT n.dead`;
  const look = async () => (await database.query(published).catch(() => [])).length === nodes;
  await waitUntil(look, "every node has told of a lock that it holds", PATIENT);
}

/**
 * Waits until every database session is at least 3 seconds old, so that each node can tell from its own reads whether
 * the others are alive.
 */
async function untilOld({ database }: Cluster): Promise<void> {
  const young = `SELECT 1 FROM pg_stat_activity a JOIN (${LOCKS}) AS locked USING (pid)
    WHERE clock_timestamp() - a.backend_start < interval '3 seconds'`;
  await waitUntil(async () => (await database.query(young)).length === 0, "every session is old", PATIENT);
}

async function expectNobodyDied(cluster: Cluster, nodes: readonly ClusterNode[]): Promise<void> {
  for (const node of nodes) {
    expect(node.stderr()).not.toMatch(/declared an instance dead|this instance has ended/);
    expect(await instancesOf(cluster, node)).toBe(1);
  }
}

function inTurn(nodes: readonly ClusterNode[]): PersistentCaller {
  let turn = 0;
  return new PersistentCaller(() => (nodes[turn++ % nodes.length] as ClusterNode).client);
}

/**
 * Starts busy loops in separate sessions: if Linux schedules by session, loops in this session would starve only this
 * test.
 */
function starve(): () => void {
  const loops = range(BUSY_LOOPS).map(() =>
    spawn(process.execPath, ["-e", "for (;;);"], { detached: true, stdio: "ignore" }),
  );
  return () => {
    for (const loop of loops) loop.kill("SIGKILL");
  };
}

describe("no live node is declared dead", () => {
  it("although repeated restarts of PostgreSQL end the nodes' sessions", async ({ cluster, postgres }) => {
    const nodes = await cluster.startAll(3, { variables: VARIABLES });
    await cluster.untilSpread(nodes);
    const load = startLoad({ caller: inTurn(nodes), request: createAnywhere, workers: 2, batch: 5 });
    for (const _ of range(4)) {
      await untilLocked(cluster, 3);
      await postgres.crash();
    }
    await untilLocked(cluster, 3);
    const accepted = load.accepted.length;
    await waitUntil(() => load.accepted.length > accepted + 20, "creates are accepted", PATIENT);
    await load.stop();
    await expectNobodyDied(cluster, nodes);
    await auditCluster(cluster, load.accepted);
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts, src/application/lane/other-instances.ts
  it("although the nodes' sessions are terminated repeatedly on a machine short of CPU", async ({ cluster }) => {
    const nodes = await cluster.startAll(3, { variables: VARIABLES });
    await cluster.untilSpread(nodes);
    const release = starve();
    try {
      const load = startLoad({ caller: inTurn(nodes), request: createAnywhere, workers: 2, batch: 5 });
      for (const round of range(8)) {
        await untilLocked(cluster, 3);
        if (round % 2 === 0) await untilOld(cluster);
        await cluster.database.query(`SELECT pg_terminate_backend(locked.pid) FROM (${LOCKS}) AS locked`);
        process.stdout.write(`round ${round}: ${crowding().toFixed(1)} want each processor\n`);
      }
      await untilLocked(cluster, 3);
      await load.stop();
      await expectNobodyDied(cluster, nodes);
      await auditCluster(cluster, load.accepted);
    } finally {
      release();
    }
  });
});
