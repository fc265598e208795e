/** Tests kill, suspend, hold and the end of a lease, each with a slow endpoint that refuses batches. */
import { afterEach, describe, expect } from "vitest";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { crowding } from "../support/crowding.ts";
import { BLOCK_TIME_MS, it, nodesOn, SHORT_LEASE } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { blocksLater, type SlowEndpoint, startSlowEndpoint } from "../support/slow-endpoint.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { pricedTransfer, range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const COUNT = 64;
const ANSWERED_WITHIN_MS = 250;
/** Number of blocks mined in two seconds, which is far longer than a node needs to begin the next send. */
const A_WHILE_BLOCKS = 2_000 / BLOCK_TIME_MS;
/** A number of blocks that takes longer than the short lease. */
const A_LEASE_BLOCKS = 3_500 / BLOCK_TIME_MS;

let endpoint: SlowEndpoint;
afterEach(() => endpoint.close());

/**
 * Sends a full in-flight window of transactions to an endpoint that accepts one at a time. Resolves when three have
 * arrived.
 */
async function threeOfMany(node: NodeProcess): Promise<readonly string[]> {
  endpoint.takesBatches = false;
  endpoint.sendMs = 60;
  const results = await node.client.sendBatch(range(COUNT).map((index) => pricedTransfer(index)));
  await waitUntil(() => endpoint.arrivals.length >= 3, "three sends have arrived", { everyMs: 1 });
  return results.map((result) => ("txId" in result ? result.txId : "refused"));
}

const post = async (node: NodeProcess, path: string, method = "POST") => {
  const startedMs = systemClock.monotonicMs();
  const answer = await fetch(`${node.url}/api/v1${path}`, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ reason: "attack" }),
  });
  const body = (await answer.json()) as Record<string, unknown>;
  return {
    status: answer.status,
    body,
    tookMs: systemClock.monotonicMs() - startedMs,
    atMs: systemClock.monotonicMs(),
  };
};

const startedAfter = (atMs: number) => endpoint.arrivals.filter((arrivedMs) => arrivedMs > atMs).length;

describe("a stop after 3 of 64 sends", () => {
  it.for([
    ["a kill of everything", "/kill", ["/kill", "DELETE"]],
    ["a suspended signer", `/signers/SIGNER/suspend`, [`/signers/SIGNER/resume`, "POST"]],
  ] as const)(
    // protects [The kill switch] src/adapters/evm/rpc/http.ts, src/adapters/evm/rpc/transport.ts
    "is acknowledged at once, and no send starts after the response: %s",
    async ([, stop, goOn], { simulated, nodes, database }) => {
      endpoint = await startSlowEndpoint(simulated.url);
      const node = await nodes.start(endpoint.url);
      const { signer } = pricedTransfer(0);
      const path = (text: string) => text.replace("SIGNER", String(signer));
      await threeOfMany(node);
      const { status, tookMs, atMs } = await post(node, path(stop));
      expect(status).toBeLessThan(300);
      expect(tookMs).toBeLessThanOrEqual(ANSWERED_WITHIN_MS * crowding());
      await blocksLater(simulated, A_WHILE_BLOCKS);
      // This endpoint accepts one send at a time. So at most one send, already in flight when the node confirmed the
      // stop, may still arrive.
      expect(startedAfter(atMs)).toBeLessThanOrEqual(1);
      expect(endpoint.arrivals.length).toBeLessThan(12);
      endpoint.sendMs = 0;
      await post(node, path(goOn[0]), goOn[1]);
      await untilSettled(database, COUNT);
      await audit({ database, rpcUrl: simulated.url, witnessed: simulated.chain.witness.map(({ hash }) => hash) });
    },
  );

  it("lets all other transactions be sent if it holds only one", async ({ simulated, nodes, database }) => {
    endpoint = await startSlowEndpoint(simulated.url);
    const node = await nodes.start(endpoint.url);
    const created = await threeOfMany(node);
    const held = created[COUNT - 1] as string;
    const { tookMs } = await post(node, `/tx/${held}/suspend`);
    expect(tookMs).toBeLessThanOrEqual(ANSWERED_WITHIN_MS * crowding());
    endpoint.sendMs = 0;
    await waitUntil(() => endpoint.arrivals.length >= COUNT - 1, "the others have left");
    await blocksLater(simulated, A_WHILE_BLOCKS);
    expect(endpoint.arrivals.length).toBe(COUNT - 1);
    const view = (await (await fetch(`${node.url}/api/v1/tx/${held}`)).json()) as { lastError: unknown };
    expect(view.lastError).toBeNull();
    await post(node, `/tx/${held}/resume`);
    await untilSettled(database, COUNT);
  });
});

describe("a send that hangs", () => {
  // protects [The kill switch] src/application/operations/lane-actions.ts, src/application/operations/transaction-actions.ts, src/application/cluster/kill-switch.ts
  it("delays no suspend, hold or kill", async ({ simulated, nodes }) => {
    endpoint = await startSlowEndpoint(simulated.url);
    const node = await nodes.start(endpoint.url);
    endpoint.sendMs = 8_000;
    const { txId, signer } = await node.client.send(pricedTransfer(0));
    await waitUntil(() => endpoint.arrivals.length === 1, "the send hangs");
    const answers = [
      await post(node, `/tx/${txId}/suspend`),
      await post(node, `/signers/${signer}/suspend`),
      await post(node, "/kill"),
    ];
    expect(answers.map(({ status }) => status < 300)).toEqual([true, true, true]);
    for (const { tookMs } of answers) expect(tookMs).toBeLessThanOrEqual(ANSWERED_WITHIN_MS * crowding());
  });
});

describe("a process that is frozen past its lease and then continues", () => {
  // protects [The kill switch] src/application/stages/4-broadcast/broadcast.ts
  it("starts no send before renewing the lease", async ({ simulated, database }) => {
    endpoint = await startSlowEndpoint(simulated.url);
    const proxy = await TcpProxy.start(Number(new URL(database.url).port));
    const nodes = nodesOn(proxy.through(database.url));
    try {
      const node = await nodes.start(endpoint.url, SHORT_LEASE);
      await threeOfMany(node);
      node.signal("SIGSTOP");
      // The request that was in flight at SIGSTOP still arrives at the endpoint. The stopped process does not read the
      // response, which would release the next send.
      await blocksLater(simulated, 500 / BLOCK_TIME_MS);
      const before = endpoint.arrivals.length;
      proxy.freeze();
      await blocksLater(simulated, A_LEASE_BLOCKS);
      node.signal("SIGCONT");
      await blocksLater(simulated, A_WHILE_BLOCKS);
      expect(endpoint.arrivals.length).toBe(before);
      endpoint.sendMs = 0;
      proxy.thaw();
      await untilSettled(database, COUNT);
    } finally {
      await nodes.killAll();
      await proxy.close();
    }
  });
});
