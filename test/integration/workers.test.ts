/** `fencepost start --workers N`: several nodes behind one port, each in a process that can die without the others. */
import { execFileSync } from "node:child_process";
import { describe, expect } from "vitest";
import { type Address, createClient, type FencepostClient } from "../../src/client/index.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { type Database, it, KEYS, OTHER_SIGNER, SHORT_LEASE, SIGNER } from "../support/integration.ts";
import { type FencepostProcess, spawnFencepost } from "../support/node-process.ts";
import { pricedTransfer, range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const SIGNERS = [SIGNER, OTHER_SIGNER];

interface Crew {
  readonly child: FencepostProcess;
  readonly url: string;
  readonly client: FencepostClient;
}

/** Starts two workers on a port that the system chooses, and waits until each has its share of the lanes. */
async function startCrew(database: Database, rpcUrl: string): Promise<Crew> {
  const child = spawnFencepost(["start", "--workers", "2"], {
    variables: {
      ...SHORT_LEASE,
      FENCEPOST_PORT: "0",
      FENCEPOST_AUTH: "none",
      FENCEPOST_NODE_ID: "crew",
      FENCEPOST_PRIVATE_KEYS: KEYS.join(","),
      FENCEPOST_POLL_INTERVAL: "100ms",
      FENCEPOST_CONFIRMATIONS: "2",
      FENCEPOST_LOG_LEVEL: "warn",
      FENCEPOST_DATABASE_URL: database.url,
      FENCEPOST_RPC_URL: rpcUrl,
    },
  });
  const { url, nodeId } = await child.ready;
  expect(nodeId).toBe("crew");
  const client = createClient({ url });
  await waitUntil(async () => (await owners(client)).size === 2, "each worker owns a lane");
  return { child, url, client };
}

async function owners(client: FencepostClient): Promise<ReadonlySet<string>> {
  return new Set((await client.leases()).map(({ nodeId }) => nodeId));
}

function childrenOf(pid: number): readonly number[] {
  const listed = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return listed.trim().split(/\s+/).map(Number);
}

/** True if the worker responds within a second. */
async function isAwake(url: string): Promise<boolean> {
  return fetch(`${url}/healthz`, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

describe("workers of fencepost start --workers", () => {
  it("share one port", async ({ simulated, database }) => {
    const { child, url, client } = await startCrew(database, simulated.url);
    const before = await client.nodes();
    expect(before.map(({ nodeId }) => nodeId).sort()).toEqual(["crew-1", "crew-2"]);
    const own = before.map((node) => node.url);
    expect(new Set([...own, url]).size).toBe(3);
    for (const each of own) expect((await fetch(`${each}/readyz`)).status).toBe(200);
    // Both workers accept requests for both signers, because either may get the connection.
    await Promise.all(range(20).map((n) => client.send({ ...pricedTransfer(n), signer: SIGNERS[n % 2] as Address })));

    process.kill(childrenOf(child.pid)[0] as number, "SIGKILL");
    const known = new Set(before.map(({ instanceId }) => instanceId));
    const after = await waitUntil(async () => {
      const nodes = await client.nodes().catch(() => []);
      const isNew = nodes.some(({ instanceId }) => !known.has(instanceId));
      return isNew && new Set(nodes.map(({ nodeId }) => nodeId)).size === 2 ? nodes : null;
    }, "another worker has taken its place");
    expect(new Set(after.map(({ nodeId }) => nodeId))).toEqual(new Set(["crew-1", "crew-2"]));
    await untilSettled(database, 20);
    await audit({ database, rpcUrl: simulated.url });

    const living = childrenOf(child.pid);
    child.signal("SIGTERM");
    expect(await child.exited).toEqual({ code: 0, signal: null });
    for (const pid of living) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    expect(await database.query("SELECT 1 FROM fencepost.lane WHERE owner_instance IS NOT NULL")).toEqual([]);
  });

  it("continue if one worker is paused", async ({ simulated, database }) => {
    const { child, client } = await startCrew(database, simulated.url);
    const nodes = await client.nodes();
    const leases = await client.leases();
    const paused = childrenOf(child.pid)[0] as number;
    await Promise.all(range(10).map((n) => client.send({ ...pricedTransfer(n), signer: SIGNERS[n % 2] as Address })));
    process.kill(paused, "SIGSTOP");
    try {
      const states = await Promise.all(
        nodes.map(async ({ nodeId, url }) => ({ nodeId, url, awake: await isAwake(url) })),
      );
      const awake = states.find((each) => each.awake);
      expect(states.filter((each) => each.awake)).toHaveLength(1);
      const other = createClient({ url: awake?.url as string });
      const mine = leases.find(({ nodeId }) => nodeId === awake?.nodeId)?.signer as Address;
      const theirs = SIGNERS.find((signer) => signer !== mine) as Address;
      // A create, its completion and the feed, for a lane of the other worker: none of them waits for the stopped
      // worker.
      const { txId } = await other.send({ ...pricedTransfer(100), signer: mine });
      const settled = await other.waitFor(txId, { timeoutMs: 2_500 });
      expect(settled.state).toBe("CONFIRMED");
      const next = await waitUntil(
        () => other.send({ ...pricedTransfer(101), signer: theirs }).catch(() => null),
        "the other signer is taken over",
      );
      expect((await other.waitFor(next.txId)).state).toBe("CONFIRMED");
    } finally {
      process.kill(paused, "SIGCONT");
    }
    await untilSettled(database, 12);
    await audit({ database, rpcUrl: simulated.url });
    child.signal("SIGTERM");
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });
});
