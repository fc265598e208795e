/**
 * SIGSTOP stops a node for longer than its lease, and other nodes take its lanes. After its return, the node does not
 * claim these lanes for a while.
 */
import { describe, expect } from "vitest";
import { auditCluster } from "../support/cluster/auditor.ts";
import { type ClusterNode, instancesOf, it, keysOf, LEASE_MS, SIGNERS } from "../support/cluster/cluster.ts";
import { createOn } from "../support/cluster/creates.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { waitUntil } from "../support/wait-until.ts";

const PAIR = SIGNERS.slice(0, 2);

describe("a node stopped for longer than its lease", () => {
  // protects [Processes that end, and those that only seem to] src/domain/cluster/stand-back.ts, src/domain/cluster/placement.ts
  it("leaves its lane to the new owner for one lease duration", async ({ cluster }) => {
    // A lease long enough that the other node does not lose it, however crowded the machine is.
    const calm = { FENCEPOST_LEASE_DURATION: "30s", FENCEPOST_LEASE_RENEW_INTERVAL: "3s" };
    const nodes: [ClusterNode, ClusterNode] = [
      await cluster.start({ variables: keysOf(PAIR) }),
      await cluster.start({ variables: { ...keysOf(PAIR), ...calm } }),
    ];
    const [stopped, other] = nodes;
    const owners = await cluster.untilSpread(nodes, PAIR.length);
    const signer = PAIR.find((each) => owners.get(each) === stopped.nodeId) as (typeof PAIR)[number];
    const instances = await instancesOf(cluster, stopped);
    stopped.signal("SIGSTOP");
    await waitUntil(async () => (await cluster.owners()).get(signer) === other.nodeId, "the other has its lane");
    stopped.signal("SIGCONT");
    await waitUntil(async () => (await instancesOf(cluster, stopped)) > instances, "it goes on as a new instance");
    const accepted = [await new PersistentCaller(() => stopped.client).send(createOn([signer])(0))];
    expect((await cluster.owners()).get(signer), "taken to who acts").toBe(other.nodeId);
    await cluster.untilSpread(nodes, PAIR.length);
    const [claimed] = await cluster.database.query<{ after_ms: number }>(
      `SELECT (extract(epoch FROM min(l.acquired_at) - n.started_at) * 1000)::float8 AS after_ms
       FROM fencepost.lane l JOIN fencepost.node_instance n ON n.instance_id = l.owner_instance
       WHERE n.node_id = $1 GROUP BY n.started_at`,
      [stopped.nodeId],
    );
    // The node waits for one lease from the time at which it noticed its stall. That is a little before it registered
    // as a new instance.
    expect(claimed?.after_ms).toBeGreaterThan(LEASE_MS - 500);
    await auditCluster(cluster, accepted);
  });
});
