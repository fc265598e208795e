/**
 * A node is stopped by SIGSTOP while its database session holds a lock that every node needs. The other nodes wait only
 * until the server ends that session's transaction.
 */
import { describe, expect } from "vitest";
import { auditCluster } from "../support/cluster/auditor.ts";
import { type Cluster, type ClusterNode, instancesOf, it, keysOf, SIGNERS } from "../support/cluster/cluster.ts";
import { createOn } from "../support/cluster/creates.ts";
import { isLong } from "../support/cluster/length.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import type { TcpProxy } from "../support/tcp-proxy.ts";
import { range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const FEW = SIGNERS.slice(0, 4);
/**
 * A lease that does not expire in this test. The other nodes can continue because the server ends a stalled transaction
 * after a thirtieth of the lease.
 */
const VARIABLES = { ...keysOf(FEW), FENCEPOST_LEASE_DURATION: "90s" };

interface Moment {
  /**
   * Resolves when the database session holds the lock and gets no more bytes from its client. The returned function
   * lets the bytes continue.
   */
  readonly stall: (wire: TcpProxy) => Promise<() => void>;
  /** The SQL condition that finds the lock in pg_locks. */
  readonly lock: string;
}

const COUNTER = [
  "the feed's counter",
  {
    stall: (wire) => wire.holdCommitBehind("fencepost:append-completions"),
    lock: "l.relation = 'fencepost.feed'::regclass AND l.mode = 'RowExclusiveLock'",
  },
] as const satisfies readonly [string, Moment];
const BLOCKS = [
  "the turn to store blocks",
  { stall: (wire) => wire.holdAt("fencepost:insert-confirmations"), lock: "l.locktype = 'advisory'" },
] as const satisfies readonly [string, Moment];

/** True if a session that holds the lock is idle in a transaction. */
async function isHeld({ database }: Cluster, lock: string): Promise<boolean> {
  const rows = await database.query(
    `SELECT 1 FROM pg_stat_activity AS a JOIN pg_locks AS l USING (pid)
     WHERE a.datname = current_database() AND a.state = 'idle in transaction' AND l.granted AND ${lock}`,
  );
  return rows.length > 0;
}

async function isAlive({ database }: Cluster, { nodeId }: ClusterNode): Promise<boolean> {
  const alive =
    "SELECT 1 FROM fencepost.node_instance WHERE node_id = $1 AND NOT dead AND expires_at > clock_timestamp()";
  return (await database.query(alive, [nodeId])).length === 1;
}

describe("a node stopped by SIGSTOP", () => {
  it.for(isLong ? [COUNTER, BLOCKS] : [COUNTER])(
    "does not block completions of other nodes while its session holds %s",
    async ([, { stall, lock }], { cluster }) => {
      const [paused, other] = (await cluster.startAll(2, { variables: VARIABLES })) as [ClusterNode, ClusterNode];
      const owners = await cluster.untilSpread([paused, other], FEW.length);
      const caller = new PersistentCaller(() => other.client);
      const releases: (() => void)[] = [];
      const stalled = stall(paused.databaseWire).then((release) => void releases.push(release));
      const sent: ReturnType<typeof caller.sendBatch>[] = [];
      // The other node may have got the lock first each time. Create more transactions until the node that is to be
      // paused gets it.
      while (releases.length === 0) {
        sent.push(caller.sendBatch(range(20).map(createOn(FEW, `round-${sent.length}`))));
        await Promise.race([stalled, sent.at(-1)]);
      }
      paused.signal("SIGSTOP");
      await waitUntil(() => isHeld(cluster, lock), "its session has it");

      const mine = FEW.filter((signer) => owners.get(signer) === other.nodeId);
      const after = await caller.sendBatch(range(20).map(createOn(mine, "after")));
      const outcomes = await Promise.all(after.map(({ txId }) => other.client.waitFor(txId, { timeoutMs: 60_000 })));
      expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["CONFIRMED"]));
      expect(await isAlive(cluster, paused), "no node had to wait for the end of its lease").toBe(true);

      paused.signal("SIGCONT");
      for (const release of releases) release();
      await auditCluster(cluster, [...(await Promise.all(sent)).flat(), ...after]);
      expect(await instancesOf(cluster, paused), "it has lost nothing but that one transaction").toBe(1);
    },
  );
});
