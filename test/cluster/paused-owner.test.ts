/** SIGSTOP of an owner past its lease, in the middle of something; another takes over; SIGCONT. */
import { describe, expect, vi } from "vitest";
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

/** Leases run out, and machines are slow. */
vi.setConfig({ testTimeout: 120_000 });

/** Asks the nodes in turn, as a load balancer would. */
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

/** The other has everything; then the owner wakes up, is refused, and goes on as a new instance. */
async function takeOverAndWake(
  cluster: Cluster,
  { owner, other, load, release = () => undefined }: Scene,
): Promise<void> {
  await untilOwnedBy(cluster, other);
  // More than one if the machine starved it past its lease before it was stopped.
  const instances = await instancesOf(cluster, owner);
  // Those of the load may all wait for the one that is stopped.
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

/** How late a write is, is the machine's: whether the database refused it or its own deadline stopped it, it is counted. */
async function expectFenced({ owner }: Scene): Promise<void> {
  expect(await metric(owner, "fencepost_lease_fenced_total"), "late writes are counted").toBeGreaterThan(0);
}

interface Scene {
  readonly owner: ClusterNode;
  readonly other: ClusterNode;
  readonly load: Load;
  /** Lets bytes go that the owner had written before it was stopped. */
  readonly release?: () => void;
}

interface Place {
  readonly failpoint: Failpoint;
  readonly passage: number;
}

/** The next write is too late, and is sent all the same: only the fence refuses it. */
const PLACES: readonly (readonly [string, Place])[] = [
  ["a broadcast, its bytes sent and the answer not noted", { failpoint: "broadcast.sent", passage: 5 }],
  ["a finality write, decided and not written", { failpoint: "finality.decided", passage: 3 }],
];

/**
 * Wherever else on the road of every transaction it may be stopped. At some of these its own deadline is what stops it,
 * before it writes anything. Detours are not taken by this load; test/cluster/long/crash-nonces.test.ts takes them.
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

describe("SIGSTOP of the owner past its lease", () => {
  it.for(isLong ? PLACES : PLACES.slice(0, 1))(
    "in the middle of %s: late writes are fenced, and it re-joins by itself",
    async ([, place], { cluster }) => {
      const scene = await stopAt(cluster, place);
      await takeOverAndWake(cluster, scene);
      await expectFenced(scene);
    },
  );

  it.for(isLong ? ELSEWHERE : [])(
    "at %s: nothing is late, and it re-joins by itself",
    async (failpoint, { cluster }) => {
      await takeOverAndWake(cluster, await stopAt(cluster, { failpoint, passage: 4 }));
    },
  );

  it("in the middle of a batch, its lanes locked and its rows on the wire: nothing of it is ever there", async ({
    cluster,
  }) => {
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
