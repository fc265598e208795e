/** Tests of a node that has lost its connection to the database or to the chain, or that never had a signer's key. */
import { describe, expect } from "vitest";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { CreatedTransaction, FencepostApiError } from "../../../src/client/index.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { auditCluster } from "../../support/cluster/auditor.ts";
import type { Hold } from "../../support/cluster/chain-wire.ts";
import {
  type Cluster,
  type ClusterNode,
  instancesOf,
  it,
  keysOf,
  LEASE_MS,
  metric,
  SIGNERS,
  SKEW_MS,
} from "../../support/cluster/cluster.ts";
import { createOn } from "../../support/cluster/creates.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { range } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const FEW = SIGNERS.slice(0, 4);
const VARIABLES = keysOf(FEW);

async function ownedBy({ nodeId }: ClusterNode, cluster: Cluster): Promise<readonly string[]> {
  const owned = [...(await cluster.owners())].filter(([, owner]) => owner === nodeId);
  return owned.map(([signer]) => signer).sort();
}

async function untilOwnedBy(cluster: Cluster, node: ClusterNode): Promise<void> {
  const look = async () => (await ownedBy(node, cluster)).length === FEW.length;
  await waitUntil(look, `${node.nodeId} has every lane`);
}

describe("a node that is cut off from the database only", () => {
  it("starts no send although its lease is valid", async ({ cluster }) => {
    const node = await cluster.start({ variables: VARIABLES });
    const [late, early] = [await sendHeld(cluster, node, 0), await sendHeld(cluster, node, 1)];
    node.databaseWire.refuse();
    node.databaseWire.cut();
    const deadlineMs = systemClock.monotonicMs() + LEASE_MS - SKEW_MS;
    // The node's database session is gone, and with it the lock that shows other nodes that it is alive. They may
    // declare it dead at any moment.
    const sent = node.chainWire.sent;
    early.hold.release();
    await waitUntil(() => systemClock.monotonicMs() > deadlineMs, "the deadline has passed");
    expect(node.chainWire.sent, "nothing of the lane whose answers came").toBe(sent);
    late.hold.release();
    const other = await cluster.start({ variables: VARIABLES });
    await untilOwnedBy(cluster, other);
    await waitUntil(() => other.chainWire.sent >= 600 - sent, "the other sends the rest, claimed anew");
    expect(node.chainWire.sent, "not one more").toBe(sent);
    node.databaseWire.admit();
    await waitUntil(async () => (await instancesOf(cluster, node)) === 2, "it is back, as a new instance");
    await cluster.untilSpread([node, other], FEW.length);
    const again = await new PersistentCaller(() => node.client).sendBatch(range(20).map(createOn(FEW, "again")));
    await auditCluster(cluster, [...late.accepted, ...early.accepted, ...again]);
  });
});

/**
 * Signs 300 transactions of a lane and stores the right to send them. The chain has received the first of them and has
 * not responded.
 */
async function sendHeld(
  cluster: Cluster,
  node: ClusterNode,
  lane: number,
): Promise<{ readonly hold: Hold; readonly accepted: readonly CreatedTransaction[] }> {
  const hold = node.chainWire.hold();
  const creates = range(300).map(createOn([FEW[lane] as Address], `held-${lane}`));
  const accepted = await new PersistentCaller(() => node.client).sendBatch(creates);
  await hold.reached;
  const claimed = "SELECT 1 FROM tripwire.claim";
  const look = async () => (await cluster.database.query(claimed)).length === 300 * (lane + 1);
  await waitUntil(look, "everything is claimed");
  return { hold, accepted };
}

describe("a node that is cut off from the chain only", () => {
  it("loses its lanes to a connected node", async ({ cluster }) => {
    const [node, other] = (await cluster.startAll(2, { variables: VARIABLES })) as [ClusterNode, ClusterNode];
    await cluster.untilSpread([node, other], FEW.length);
    const caller = new PersistentCaller(() => other.client);
    const accepted = [...(await caller.sendBatch(range(40).map(createOn(FEW))))];
    node.chainWire.cut();
    accepted.push(...(await caller.sendBatch(range(40).map(createOn(FEW, "cut")))));
    await untilOwnedBy(cluster, other);
    // The node owns no lane, but it accepts requests and forwards them to the owner.
    caller.current = () => node.client;
    accepted.push(...(await caller.sendBatch(range(40).map(createOn(FEW, "gone")))));
    expect(await instancesOf(cluster, node), "its lease is another matter").toBe(1);
    expect(await metric(node, "fencepost_lease_fenced_total")).toBe(0);
    // Now no node can reach the chain, so there is no better node for the lanes.
    other.chainWire.cut();
    const away = "SELECT 1 FROM fencepost.node_instance WHERE NOT dead AND chains = '{}'";
    await waitUntil(async () => (await cluster.database.query(away)).length === 2, "both say that it is away");
    accepted.push(...(await caller.sendBatch(range(40).map(createOn(FEW, "dark")))));
    expect(await ownedBy(other, cluster)).toHaveLength(FEW.length);
    other.chainWire.repair();
    node.chainWire.repair();
    await cluster.untilSpread([node, other], FEW.length);
    accepted.push(...(await caller.sendBatch(range(40).map(createOn(FEW, "back")))));
    await auditCluster(cluster, accepted);
  });
});

describe("a node without the key of a lane", () => {
  it("never acquires the lane", async ({ cluster }) => {
    const [mine, theirs] = [FEW.slice(0, 2), FEW.slice(2)];
    const [node, other] = (await Promise.all([
      cluster.start({ variables: keysOf(mine) }),
      cluster.start({ variables: keysOf(theirs) }),
    ])) as [ClusterNode, ClusterNode];
    const caller = new PersistentCaller(() => node.client);
    const accepted = [...(await caller.sendBatch(range(20).map(createOn(FEW))))];
    other.signal("SIGKILL");
    const dead = "SELECT 1 FROM fencepost.node_instance WHERE node_id = $1 AND dead";
    await waitUntil(async () => (await cluster.database.query(dead, [other.nodeId])).length > 0, "it is declared dead");
    const refusal = await waitUntil(async () => {
      const code = await node.client
        .send(createOn(theirs, "refused")(0))
        .catch((error: FencepostApiError) => error.code);
      // The create gets UNAVAILABLE until this node has noticed the other node's death.
      return code === "UNAVAILABLE" ? null : code;
    }, "an answer comes");
    expect(refusal).toBe("UNKNOWN_SIGNER");
    expect(await ownedBy(node, cluster)).toEqual([...mine].sort());
    accepted.push(...(await caller.sendBatch(range(20).map(createOn(mine, "mine")))));
    const again = await cluster.start({ variables: keysOf(theirs) });
    caller.current = () => again.client;
    accepted.push(...(await caller.sendBatch(range(20).map(createOn(theirs, "theirs")))));
    expect(await ownedBy(again, cluster)).toEqual([...theirs].sort());
    await auditCluster(cluster, accepted);
  });
});
