/**
 * The routes between nodes accept only requests made with the private key of a live process. Nothing in the database
 * gives access to these routes.
 */

import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import type { Address } from "../../src/client/index.ts";
import { type Database, it, OTHER_SIGNER, SIGNER } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { parseExposition } from "../support/prometheus-text.ts";
import { transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const SCHEMES = ["Fencepost-Node", "Fencepost-Instance", "Bearer"];

/** Every text in a dump of the database. */
async function dumpOf(database: Database): Promise<readonly string[]> {
  const tables = await database.query<{ name: string }>(
    "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'fencepost'",
  );
  const texts = new Set<string>();
  for (const { name } of tables) {
    const rows = await database.query<{ row: Record<string, unknown> }>(`SELECT to_json(t) AS row FROM ${name} AS t`);
    for (const value of rows.flatMap(({ row }) => Object.values(row))) {
      if (typeof value === "string" && /^[\x21-\x7e]{16,255}$/.test(value)) texts.add(value);
    }
  }
  return [...texts];
}

describe("an attacker who can read the database", () => {
  // protects [Attacks] src/adapters/peers/gate.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("finds nothing there that authorises requests between nodes", async ({ simulated, nodes, database }) => {
    const node = await nodes.start(simulated.url, {
      FENCEPOST_AUTH: "keys",
      FENCEPOST_API_KEYS: "shop:canary-canary-canary-canary",
    });
    const texts = await dumpOf(database);
    expect(texts.length).toBeGreaterThan(0);
    const body = JSON.stringify({ creates: [{ txId: randomUUID(), request: transfer(0) }], repeat: false });
    const statuses = texts.flatMap((text) =>
      SCHEMES.map(async (scheme) => {
        const headers = { authorization: `${scheme} ${text}`, "content-type": "application/json" };
        return (await fetch(`${node.url}/internal/v1/creates`, { method: "POST", headers, body })).status;
      }),
    );
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([401]));
    const sent = await database.query("SELECT FROM fencepost.transaction WHERE signer = $1", [SIGNER.toLowerCase()]);
    expect(sent).toEqual([]);
  });
});

const HOUR_MS = 3_600_000;
const shiftingClock = fileURLToPath(new URL("../support/cluster/shifting-clock.mjs", import.meta.url));
const SECRET = "a-secret-of-the-nodes-1";
const GUARDED = { FENCEPOST_CLUSTER_SECRET: SECRET, FENCEPOST_PEER_URL_PATTERN: "http://127.0.0.1:*" };

/** Waits until each of two nodes owns a lane. Returns one signer per node, by node id. */
async function spread(node: NodeProcess): Promise<ReadonlyMap<string, string>> {
  const leases = await waitUntil(async () => {
    const found = await node.client.leases();
    return new Set(found.map(({ nodeId }) => nodeId)).size === 2 ? found : null;
  }, "each node owns a lane");
  return new Map(leases.map(({ nodeId, signer }) => [nodeId, signer]));
}

async function refused({ url }: NodeProcess): Promise<Readonly<Record<string, number>>> {
  const { samples } = parseExposition(await (await fetch(`${url}/metrics`)).text());
  const counted = samples.filter(({ name }) => name === "fencepost_peer_refused_total");
  return Object.fromEntries(counted.map(({ labels, value }) => [labels.reason, value]));
}

describe("two nodes with a shared cluster secret", () => {
  // protects [Attacks] src/adapters/peers/gate.ts
  it("serve each other's signers, even if their clocks differ by an hour", async ({ simulated, nodes }) => {
    const jumping = (ms: number) =>
      nodes.start(simulated.url, {
        ...GUARDED,
        NODE_OPTIONS: `--import ${shiftingClock}`,
        CLOCK_JUMP_MS: String(ms),
        FENCEPOST_LEASE_DURATION: "20s",
      });
    const pair = [await jumping(HOUR_MS), await jumping(-HOUR_MS)] as const;
    const signers = await spread(pair[0]);
    for (const node of pair) node.signal("SIGUSR2");
    await waitUntil(() => pair.every((node) => node.stdout().includes("the clock says")), "both clocks have jumped");
    for (const [index, node] of pair.entries()) {
      const other = pair[1 - index] as NodeProcess;
      const signer = signers.get(other.nodeId) as Address;
      expect(await node.client.send({ ...transfer(index), signer })).toMatchObject({ nonce: 0 });
      expect(await refused(node)).toEqual({});
    }
  });

  it("recognise each other after a restart of one node", async ({ simulated, nodes }) => {
    const staying = await nodes.start(simulated.url, GUARDED);
    const killed = await nodes.start(simulated.url, GUARDED);
    await spread(staying);
    killed.signal("SIGKILL");
    await killed.exited;
    const { port } = new URL(killed.url);
    const started = await nodes.start(simulated.url, { ...GUARDED, FENCEPOST_PORT: port });
    const signers = await waitUntil(async () => {
      const found = await spread(staying);
      return found.has(started.nodeId) ? found : null;
    }, "the new process owns a lane");
    const signer = signers.get(started.nodeId) as Address;
    expect(await staying.client.send({ ...transfer(0), signer })).toMatchObject({ nonce: 0 });
  });

  it("accept no request from a node without the secret", async ({ simulated, nodes }) => {
    const knowing = await nodes.start(simulated.url, GUARDED);
    const stranger = await nodes.start(simulated.url, { FENCEPOST_CLUSTER_SECRET: "another-secret-of-nodes" });
    const signers = await spread(knowing);
    const tries = async (node: NodeProcess, other: NodeProcess) => {
      const send = node.client.send({ ...transfer(0), signer: signers.get(other.nodeId) as Address });
      await expect(send).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect((await refused(node)).secret).toBeGreaterThan(0);
    };
    await Promise.all([tries(knowing, stranger), tries(stranger, knowing)]);
    expect([SIGNER, OTHER_SIGNER].sort()).toEqual([...signers.values()].sort());
  });
});

describe("a node whose URL does not match FENCEPOST_PEER_URL_PATTERN", () => {
  it("refuses to start, with one line", async ({ simulated, nodes }) => {
    const node = nodes.spawn(simulated.url, { FENCEPOST_PEER_URL_PATTERN: "https://node-*.relay.internal:3000" });
    expect(await node.exited).toEqual({ code: 1, signal: null });
    expect(node.stderr().trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^fencepost: FENCEPOST_PEER_URL_PATTERN .* does not allow the URL of this node/),
    ]);
  });
});
