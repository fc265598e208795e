/**
 * A machine's wall clock jumps by an hour, forwards and back, while nodes run. Tested with libfaketime and real
 * processes.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import { auditCluster } from "../../support/cluster/auditor.ts";
import {
  type Cluster,
  type ClusterNode,
  countByNode,
  LEASE_MS,
  metric,
  SIGNERS,
} from "../../support/cluster/cluster.ts";
import { createAnywhere, createOn } from "../../support/cluster/creates.ts";
import { it } from "../../support/cluster/fake-clocks.ts";
import { terms } from "../../support/cluster/tripwires.ts";
import { type Load, startLoad } from "../../support/load.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { waitUntil } from "../../support/wait-until.ts";

const HOUR_MS = 3_600_000;
const JUMPS = [
  ["forth", HOUR_MS],
  ["back", -HOUR_MS],
] as const;

/** A lease that does not expire on a machine that is busy with many processes. */
const PATIENT = { FENCEPOST_LEASE_DURATION: "20s" };

function loadOn(nodes: readonly ClusterNode[]): Load {
  let turn = 0;
  const caller = new PersistentCaller(() => (nodes[turn++ % nodes.length] as ClusterNode).client);
  return startLoad({ caller, request: createAnywhere, workers: 4, batch: 10 });
}

async function untilMore(load: Load, what: string): Promise<void> {
  const before = load.accepted.length;
  await waitUntil(() => load.accepted.length > before + 50, what);
}

/** The database's wall clock minus the true time, in ms. */
async function databaseIsOffMs({ database }: Cluster): Promise<number> {
  const rows = await database.query<{ ms: number }>("SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms");
  return Number(rows[0]?.ms) - Date.now();
}

describe("a node whose machine's clock jumps by an hour", () => {
  it.for(JUMPS)("loses no lease (%s)", async ([, ms], { cluster, newClock }) => {
    const clock = await newClock();
    const jumping = await cluster.start({ variables: { ...PATIENT, ...clock.variables } });
    const steady = await cluster.start({ variables: PATIENT });
    const nodes = [jumping, steady];
    const owners = await cluster.untilSpread(nodes);
    const held = await terms(cluster.database);
    const load = loadOn(nodes);
    await untilMore(load, "the load is in full swing");
    await clock.set(ms);
    await untilMore(load, "creates are accepted, also passed from node to node");
    await untilMore(load, "and go on");
    await load.stop();
    expect(await cluster.owners()).toEqual(owners);
    expect(await terms(cluster.database)).toEqual(held);
    for (const node of nodes) {
      expect(await metric(node, "fencepost_lease_fenced_total")).toBe(0);
      expect(await metric(node, "fencepost_peer_refused_total")).toBe(0);
    }
    await auditCluster(cluster, load.accepted);
  });
});

describe("a jump of the database's clock by one hour", () => {
  it.for(JUMPS)("loses and duplicates no transaction under load (%s)", async ([, ms], { cluster, databaseClock }) => {
    const nodes = await cluster.startAll(3);
    await cluster.untilSpread(nodes);
    const load = loadOn(nodes);
    await untilMore(load, "the load is in full swing");
    await databaseClock.set(ms);
    expect(Math.abs((await databaseIsOffMs(cluster)) - ms)).toBeLessThan(60_000);
    await untilMore(load, "creates are accepted after the jump");
    const owners = await cluster.untilSpread(nodes);
    await load.stop();
    expect([...countByNode(owners).values()].sort()).toEqual([6, 7, 7]);
    await auditCluster(cluster, load.accepted);
  });

  it("back in time does not delay the takeover of a dead node's lanes", async ({ cluster, databaseClock }) => {
    const [dying, heir] = (await cluster.startAll(2)) as [ClusterNode, ClusterNode];
    await cluster.untilSpread([dying, heir]);
    await databaseClock.set(-HOUR_MS);
    dying.signal("SIGSTOP");
    const caller = new PersistentCaller(() => heir.client);
    const accepted = await caller.sendBatch(SIGNERS.map((_, index) => createOn(SIGNERS)(index)));
    dying.signal("SIGKILL");
    await waitUntil(async () => (await cluster.owners()).size === SIGNERS.length, "each lane has an owner", {
      giveUpMs: 10 * LEASE_MS,
    });
    await auditCluster(cluster, accepted);
  });

  it("back in time does not extend an unused reservation", async ({ cluster, databaseClock }) => {
    const { client } = await cluster.start();
    const signer = SIGNERS[0] as Address;
    await client.send(createOn([signer])(0));
    const { reservationId, nonce } = await client.reserveNonce({ signer, ttl: "2s" });
    await databaseClock.set(-HOUR_MS);
    const above = await client.send(createOn([signer])(1));
    expect(above.nonce).toBe(nonce + 1);
    expect(await client.waitFor(above.txId)).toMatchObject({ state: "CONFIRMED" });
    expect(await client.reservation(reservationId)).toMatchObject({ state: "EXPIRED" });
  });

  it("does not reset the usage of a policy's hourly limit", async ({ cluster, databaseClock, newClock }) => {
    const directory = await makeTemporaryDirectory();
    onTestFinished(() => directory.remove());
    const file = join(directory.path, "policies.json");
    await writeFile(file, JSON.stringify({ signers: { "*": { maxValue: { perHour: "10" } } } }));
    const machine = await newClock();
    const variables = { FENCEPOST_POLICY_FILE: file, ...machine.variables };
    const { client } = await cluster.start({ variables });
    const signer = SIGNERS[0] as Address;
    const caller = new PersistentCaller(() => client);
    let index = 0;
    const accepts = async (value: number) => {
      const { payload, ...request } = createOn([signer])(index++);
      const sent = caller.send({ ...request, payload: { ...payload, value: `${BigInt(value)}` } });
      return sent.then(
        () => true,
        (error) => {
          expect(error).toMatchObject({ problem: { code: "FORBIDDEN", rule: "signer.maxValue.perHour" } });
          return false;
        },
      );
    };
    expect(await accepts(10)).toBe(true);
    expect(await accepts(1), "the hour is used up").toBe(false);
    await machine.set(2 * HOUR_MS);
    expect(await accepts(1), "the clock of the node does not count").toBe(false);
    await databaseClock.set(-HOUR_MS);
    expect(await accepts(1), "an hour that is over is not open again").toBe(false);
    await databaseClock.set(HOUR_MS);
    expect(await accepts(10), "the next hour has begun").toBe(true);
    await databaseClock.set(0);
    expect(await accepts(1), "what is charged now counts in the later hour").toBe(false);
  });
});
