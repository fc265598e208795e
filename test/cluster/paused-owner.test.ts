/**
 * SIGSTOP stops an owner at a chosen step, for longer than its lease. Another node takes over, then SIGCONT resumes the
 * first.
 */
import { describe, expect } from "vitest";
import { FAILPOINTS, type Failpoint } from "../../src/ports/failpoints.ts";
import { auditCluster } from "../support/cluster/auditor.ts";
import {
  type Cluster,
  type ClusterNode,
  instancesOf,
  it,
  keysOf,
  metric,
  SIGNERS,
} from "../support/cluster/cluster.ts";
import { createOn } from "../support/cluster/creates.ts";
import { isLong } from "../support/cluster/length.ts";
import { type Load, startLoad } from "../support/load.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { waitUntil } from "../support/wait-until.ts";

const FEW = SIGNERS.slice(0, 4);
const VARIABLES = keysOf(FEW);

/** Sends to one node after the other, as a load balancer would. */
function loadOn(nodes: readonly ClusterNode[]): Load {
  let turn = 0;
  const caller = new PersistentCaller(() => (nodes[turn++ % nodes.length] as ClusterNode).client);
  return startLoad({ caller, request: createOn(FEW), workers: 2, batch: 2 });
}

async function untilOwnedBy(cluster: Cluster, node: ClusterNode): Promise<void> {
  await waitUntil(async () => {
    const owners = await cluster.owners();
    return owners.size === FEW.length && [...owners.values()].every((nodeId) => nodeId === node.nodeId);
  }, `${node.nodeId} has every lane`);
}

/**
 * Waits until the other node has every lane, then resumes the owner, which is refused and registers as a new instance.
 */
async function takeOverAndWake(
  cluster: Cluster,
  { owner, other, load, release = () => undefined }: Scene,
): Promise<void> {
  await untilOwnedBy(cluster, other);
  // The owner may already have registered several instances, if the machine starved it past its lease before the test
  // stopped it.
  const instances = await instancesOf(cluster, owner);
  // Use a new caller: the callers of the load may all be waiting for the stopped node.
  const meanwhile = await new PersistentCaller(() => other.client).sendBatch(
    FEW.map((_, n) => createOn(FEW, "late")(n)),
  );
  owner.signal("SIGCONT");
  release();
  await waitUntil(async () => (await instancesOf(cluster, owner)) > instances, "the owner is a new instance");
  const spread = await cluster.untilSpread([owner, other], FEW.length);
  expect([...spread.values()], "it has its share again").toContain(owner.nodeId);
  const accepted = load.accepted.length;
  await waitUntil(() => load.accepted.length > accepted + 20, "both accept");
  await load.stop();
  await auditCluster(cluster, [...load.accepted, ...meanwhile]);
}

/**
 * Counts writes that came too late, whether the database refused them or the node's own deadline stopped them. Which of
 * the two happens depends on the machine.
 */
async function expectFenced({ owner }: Scene): Promise<void> {
  expect(await metric(owner, "fencepost_lease_fenced_total"), "late writes are counted").toBeGreaterThan(0);
}

interface Scene {
  readonly owner: ClusterNode;
  readonly other: ClusterNode;
  readonly load: Load;
  /** Delivers the bytes that the owner had written before it was stopped. */
  readonly release?: () => void;
}

interface Place {
  readonly failpoint: Failpoint;
  readonly passage: number;
}

/**
 * Steps at which the owner, once resumed, still sends its next write although its lease has expired, so that only the
 * fencing token stops the write.
 */
const PLACES: readonly (readonly [string, Place])[] = [
  ["a broadcast, its bytes sent and the answer not noted", { failpoint: "broadcast.sent", passage: 5 }],
  ["a finality write, decided and not written", { failpoint: "finality.decided", passage: 3 }],
];

/**
 * All other steps of an ordinary transaction at which the owner may be stopped. At some of them, the owner's own
 * deadline prevents the late write. Steps outside the ordinary path are tested in
 * test/cluster/long/crash-nonces.test.ts.
 */
const ELSEWHERE = FAILPOINTS.filter((name) =>
  /^(create|allocate|sign|broadcast\.committed|receipt|complete)/.test(name),
);

async function stopAt(cluster: Cluster, { failpoint, passage }: Place): Promise<Scene> {
  const strike = { failpoint, passage, signal: "SIGSTOP" } as const;
  const [owner, other] = await Promise.all([
    cluster.start({ variables: VARIABLES, strike }),
    cluster.start({ variables: VARIABLES }),
  ]);
  const load = loadOn([owner, other]);
  await waitUntil(() => owner.stdout().includes(`SIGSTOP at ${failpoint}`), "the owner is stopped", {
    giveUpMs: 60_000,
  });
  return { owner, other, load };
}

describe("an owner stopped by SIGSTOP past its lease", () => {
  it.for(isLong ? PLACES : PLACES.slice(0, 1))(
    "has its late writes fenced if stopped in the middle of %s",
    async ([, place], { cluster }) => {
      const scene = await stopAt(cluster, place);
      await takeOverAndWake(cluster, scene);
      await expectFenced(scene);
    },
  );

  it.for(isLong ? ELSEWHERE : [])("writes nothing late if stopped at the point %s", async (failpoint, { cluster }) => {
    await takeOverAndWake(cluster, await stopAt(cluster, { failpoint, passage: 4 }));
  });

  it("leaves no row of an interrupted batch behind", async ({ cluster }) => {
    const [owner, other] = (await cluster.startAll(2, { variables: VARIABLES })) as [ClusterNode, ClusterNode];
    await cluster.untilSpread([owner, other], FEW.length);
    const load = loadOn([owner, other]);
    await waitUntil(() => load.accepted.length > 20, "both are busy");
    const release = await owner.databaseWire.holdAt("fencepost:insert-transactions");
    owner.signal("SIGSTOP");
    const scene = { owner, other, load, release };
    await takeOverAndWake(cluster, scene);
    await expectFenced(scene);
  });
});
