/** Many nodes compete for one lane: exactly one gets it, and each change of owner gets a new fencing token. */
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished } from "vitest";
import { type CreatedTransaction, FencepostApiError } from "../../src/client/index.ts";
import { type Member, rank } from "../../src/domain/cluster/placement.ts";
import { auditCluster } from "../support/cluster/auditor.ts";
import { type Cluster, type ClusterNode, it, keysOf, LEASE_MS, SIGNERS } from "../support/cluster/cluster.ts";
import { createOn } from "../support/cluster/creates.ts";
import { isLong } from "../support/cluster/length.ts";
import { type Term, terms } from "../support/cluster/tripwires.ts";
import { crowding } from "../support/crowding.ts";
import type { Database } from "../support/integration.ts";
import { type FencepostProcess, spawnScript } from "../support/node-process.ts";
import { shareLock } from "../support/share-lock.ts";
import { range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const SIGNER = SIGNERS[0] as (typeof SIGNERS)[number];
const ONE_KEY = keysOf([SIGNER]);
const script = fileURLToPath(new URL("../support/cluster/light-process.mjs", import.meta.url));

interface Deed {
  readonly result: string;
  readonly token: number | null;
}

async function startLight(role: "claimant" | "writer", { url }: Database): Promise<FencepostProcess> {
  const process = spawnScript([script, role, url, SIGNER, String(LEASE_MS)]);
  onTestFinished(async () => {
    process.signal("SIGKILL");
    await process.exited;
  });
  await process.ready;
  return process;
}

function deedsOf(process: FencepostProcess): readonly Deed[] {
  const lines = process
    .stdout()
    .split("\n")
    .filter((line) => line.includes('"result"'));
  return lines.map((line) => JSON.parse(line) as Deed);
}

/** Each process tries to claim the lane once, all at the same moment. */
async function fight(claimants: readonly FencepostProcess[]): Promise<readonly Deed[]> {
  const before = claimants.map((each) => deedsOf(each).length);
  for (const each of claimants) each.signal("SIGUSR2");
  await waitUntil(
    () => claimants.every((each, index) => deedsOf(each).length > (before[index] as number)),
    "every process has tried",
  );
  return claimants.map((each) => deedsOf(each).at(-1) as Deed);
}

/**
 * Number of competing processes. Each has to load the store, so keep the number small: a few compete as hard as many.
 */
const COUNT = isLong ? 24 : 8;

describe(`${COUNT} processes that claim one lane`, () => {
  it("have exactly one winner", async ({ cluster: { database } }) => {
    let claimants = await Promise.all(range(COUNT).map(() => startLight("claimant", database)));
    const fightOnce = async (won: string, token: number): Promise<FencepostProcess> => {
      const deeds = await fight(claimants);
      const winners = claimants.filter((_, index) => deeds[index]?.result === won);
      expect(winners).toHaveLength(1);
      const losers = range(claimants.length - 1).map(() => ({ result: "notLeader", token: null }));
      expect(deeds.filter(({ result }) => result !== won)).toEqual(losers);
      expect(deeds).toContainEqual({ result: won, token });
      return winners[0] as FencepostProcess;
    };
    let winner = await fightOnce("acquired", 1);
    for (const token of [2, 3]) {
      winner.signal("SIGKILL");
      const { nodeId: instanceId } = await winner.ready;
      const expired = "SELECT 1 FROM fencepost.node_instance WHERE instance_id = $1 AND expires_at < clock_timestamp()";
      await waitUntil(async () => (await database.query(expired, [instanceId])).length > 0, "its lease has run out");
      claimants = claimants.filter((each) => each !== winner);
      winner = await fightOnce("takenOver", token);
    }
    expect((await terms(database)).map(({ token }) => token)).toEqual([1, 2, 3]);
  });
});

/** Sends a create for the lane to each of two nodes at the same moment, and returns both responses. */
async function askBoth(
  nodes: readonly ClusterNode[],
  index: number,
): Promise<readonly (CreatedTransaction | FencepostApiError)[]> {
  const create = createOn([SIGNER]);
  return Promise.all(
    nodes.map(({ client }, asked) =>
      client.send(create(2 * index + asked)).catch((error: unknown) => error as FencepostApiError),
    ),
  );
}

function asMember({ nodeId, url }: ClusterNode): Member {
  const chains = new Set([31_337]);
  const state = { draining: false, standsBack: false, keysAway: new Set<never>() };
  return { instanceId: nodeId, nodeId, url, mode: "basic", chains, signers: new Set([SIGNER]), ...state };
}

/**
 * Waits until the first node, which has the lane, has handed it to the node that placement prefers. Returns that node's
 * id.
 */
async function untilSettled(cluster: Cluster, nodes: readonly ClusterNode[]): Promise<string> {
  const preferred = rank({ chainId: 31_337, signer: SIGNER }, nodes.map(asMember))[0]?.nodeId as string;
  await waitUntil(async () => (await cluster.owners()).get(SIGNER) === preferred, "the lane is where it belongs");
  return preferred;
}

describe("two nodes that compete for one lane", () => {
  it("never both accept a create", async ({ cluster }) => {
    const options = { variables: { ...ONE_KEY, FENCEPOST_MODE: "basic" } };
    const nodes = await cluster.startAll(2, options);
    const preferred = await untilSettled(cluster, nodes);
    const accepted: CreatedTransaction[] = [];
    const refusals = new Set<string>();
    for (let round = 0; accepted.length < 10; round++) {
      const answers = await askBoth(nodes, round);
      const taken = answers.filter((answer): answer is CreatedTransaction => !(answer instanceof FencepostApiError));
      expect(taken.length, "never two").toBeLessThan(2);
      accepted.push(...taken);
      for (const answer of answers) {
        if (answer instanceof FencepostApiError && answer.code === "NOT_LEADER")
          refusals.add(answer.problem?.ownerUrl ?? "");
      }
    }
    const ownerUrl = nodes.find(({ nodeId }) => nodeId === preferred)?.url;
    expect(refusals).toContain(ownerUrl);
    const [owner, other] = [...nodes].sort((a) => (a.nodeId === preferred ? -1 : 1)) as [ClusterNode, ClusterNode];
    owner.signal("SIGKILL");
    const create = createOn([SIGNER], "after");
    const next = await waitUntil(() => other.client.send(create(0)).catch(() => null), "the other accepts");
    await auditCluster(cluster, [...accepted, next]);
    const [before, after] = (await terms(cluster.database)).slice(-2) as [Term, Term];
    expect(before.node_id).toBe(owner.nodeId);
    expect(after).toMatchObject({ node_id: other.nodeId, token: before.token + 1 });
  });
});

/**
 * Time from the last heartbeat of the owner with this fencing token until the lane had its next owner, by the
 * database's clock.
 */
async function takeoverMs({ database }: Cluster, token: number): Promise<number> {
  const rows = await waitUntil(async () => {
    const found = await database.query<{ ms: number }>(
      `SELECT extract(epoch FROM later.at - n.heartbeat_at)::float8 * 1000 AS ms
       FROM tripwire.term first JOIN fencepost.node_instance n USING (instance_id)
       JOIN tripwire.term later ON later.token = first.token + 1 WHERE first.token = $1`,
      [token],
    );
    return found.length > 0 ? found : null;
  }, "another node has taken over");
  return (rows[0] as { ms: number }).ms;
}

describe("the takeover of a lane", () => {
  // Sixteen writers with a shared lock on the lane's row would starve a takeover for a minute. So Fencepost's writers
  // queue for an exclusive lock, and writes of a dead owner are refused.
  it("succeeds within lease + 1 s although the old owner keeps the lane's row locked", async ({ cluster }) => {
    const writer = await startLight("writer", cluster.database);
    await cluster.start({ variables: ONE_KEY });
    writer.signal("SIGUSR2");
    expect(await takeoverMs(cluster, 1)).toBeLessThan(LEASE_MS + 1_000 * crowding());
    await waitUntil(() => deedsOf(writer).length > 0, "every late write was refused");
    expect(deedsOf(writer)).toEqual([{ result: "fenced", token: 1 }]);
  });

  // Fencepost itself never takes a shared lock on the lane's row; only other programs do. Their locks starve every
  // writer until the node that takes the lane over forces its way.
  it.for(isLong ? ["sixteen sessions of others share it without a pause"] : [])(
    "succeeds within lease + 1 s although the lock on the lane's row is never free: %s",
    async (_, { cluster }) => {
      const nodes = await cluster.startAll(2, { variables: ONE_KEY });
      const preferred = await untilSettled(cluster, nodes);
      const { token } = (await terms(cluster.database)).at(-1) as Term;
      const stop = await shareLock(cluster.database.url, SIGNER);
      nodes.find(({ nodeId }) => nodeId === preferred)?.signal("SIGKILL");
      const tookMs = await takeoverMs(cluster, token).finally(stop);
      expect(tookMs).toBeLessThan(LEASE_MS + 1_000 * crowding());
    },
  );
});
