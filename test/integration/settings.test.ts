/**
 * Checks the effect of settings on a real node: several chains, finality by tag, bounded queues, nonces used by other
 * programs.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { createClient, FencepostApiError } from "../../src/client/index.ts";
import type { Address } from "../../src/domain/lane.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { startSimulatedServer } from "../doubles/simulated-chain/server.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { BLOCK_TIME_MS, it, KEYS, SIGNER } from "../support/integration.ts";
import { spawnFencepost } from "../support/node-process.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const signer = SIGNER.toLowerCase() as Address;

describe.concurrent("a mined transaction count above the lane's next nonce", () => {
  it("becomes the nonce of the next create", async ({ simulated, nodes, database }) => {
    const { client } = await nodes.start(simulated.url, { FENCEPOST_NONCE_STATE_TIMEOUT: "0s" });
    await client.sendBatch(range(5).map((index) => pricedTransfer(index)));
    await untilSettled(database, 5);
    simulated.chain.mineForeign(signer, 5);
    expect(await client.send(pricedTransfer(5))).toMatchObject({ nonce: 10 });
    await untilSettled(database, 6);
    const metrics = await fetch(`${(await client.signer(SIGNER))[0]?.owner?.url}/metrics`);
    expect(await metrics.text()).toContain("fencepost_nonce_drift");
  });

  it("is ignored if the endpoint reports it falsely once", async ({ simulated, nodes, database }) => {
    const { client } = await nodes.start(simulated.url, { FENCEPOST_NONCE_STATE_TIMEOUT: "0s" });
    await client.waitFor((await client.send(pricedTransfer(0))).txId);
    let lies = 1;
    simulated.faults.lieAboutNonce((honest) => (lies-- > 0 ? honest + 633 : honest));
    expect(await client.send(pricedTransfer(1))).toMatchObject({ nonce: 1 });
    await untilSettled(database, 2);
    await audit({ database, rpcUrl: simulated.url });
  });
});

describe.concurrent("a full queue", () => {
  it("causes 429 responses with Retry-After", async ({ simulated, nodes, database }) => {
    const { url, client } = await nodes.start(simulated.url, { FENCEPOST_QUEUE_LIMIT: "10" });
    const results = await client.sendBatch(range(25).map((index) => pricedTransfer(index)));
    expect(results.filter(({ status }) => status === 202)).toHaveLength(10);
    expect(results.filter((result) => "code" in result && result.code === "QUEUE_FULL")).toHaveLength(15);
    // The chain does not answer estimates, so the next creates fill the queue.
    const stop = simulated.faults.inject({ kind: "hang" }, { method: "eth_estimateGas" });
    await untilSettled(database, 10);
    const waiting = range(10).map((index) =>
      client.send(transfer(100 + index)).catch((error: FencepostApiError) => error),
    );
    const refused = await waitUntil(async () => {
      const answer = await fetch(`${url}/api/v1/tx`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(transfer(200)),
        signal: AbortSignal.timeout(1_000),
      }).catch(() => null);
      return answer?.status === 429 ? answer : null;
    }, "the queue is full");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    stop();
    const answers = await Promise.all(waiting);
    const late = answers.filter((answer) => !(answer instanceof FencepostApiError));
    await untilSettled(database, 10 + late.length);
    await audit({ database, rpcUrl: simulated.url });
  });
});

describe.concurrent("finality", () => {
  it("is reached by the configured block tag: CONFIRMED only once the chain reports the block as safe", async ({
    nodes,
    database,
  }) => {
    const chain = new SimulatedChain({ tagDepths: { safe: 6, finalized: 12 } });
    const server = await startSimulatedServer({ chain, blockTimeMs: BLOCK_TIME_MS });
    try {
      const { client } = await nodes.start(server.url, { FENCEPOST_FINALITY: "safe", FENCEPOST_CONFIRMATIONS: "" });
      const { txId } = await client.send(transfer(0));
      const { receipt } = await client.waitFor(txId);
      expect(chain.head.number - (receipt?.blockNumber ?? 0)).toBeGreaterThanOrEqual(6);
      await untilSettled(database, 1);
      await audit({ database, rpcUrl: server.url });
    } finally {
      await server.close();
    }
  });
});

describe.concurrent("several chains in the configuration file", () => {
  it("give one signer a lane on each chain", async ({ edr, database }) => {
    const other = await startSimulatedServer({ chain: new SimulatedChain({ chainId: 5 }), blockTimeMs: BLOCK_TIME_MS });
    const directory = await makeTemporaryDirectory();
    const chain = { confirmations: 1, pollInterval: "100ms" };
    const config = {
      databaseUrl: database.url,
      privateKeys: KEYS,
      auth: "none",
      port: 0,
      chains: [
        { id: 31_337, rpc: edr.url, ...chain },
        { id: 5, rpc: other.url, ...chain },
      ],
    };
    await writeFile(join(directory.path, "fencepost.config.json"), JSON.stringify(config), { mode: 0o600 });
    const node = spawnFencepost(["start"], { directory: directory.path });
    try {
      const client = createClient({ url: (await node.ready).url });
      const unnamed = await client.send(transfer(0)).catch((error: FencepostApiError) => error);
      expect(unnamed).toMatchObject({ status: 400, problem: { path: "chainId" } });
      const results = await client.sendBatch([5, 31_337, 5].map((chainId, index) => ({ ...transfer(index), chainId })));
      expect(results).toMatchObject([{ nonce: 0 }, { nonce: 0 }, { nonce: 1 }]);
      for (const result of results) await client.waitFor((result as { txId: string }).txId);
      const rows = await database.query<{ chain_id: string; count: number }>(
        "SELECT chain_id, count(*)::int AS count FROM fencepost.receipt GROUP BY chain_id ORDER BY chain_id",
      );
      expect(rows).toEqual([
        { chain_id: "5", count: 2 },
        { chain_id: "31337", count: 1 },
      ]);
      expect((await client.signer(SIGNER)).map(({ chainId }) => chainId).toSorted()).toEqual([31_337, 5]);
    } finally {
      node.signal("SIGKILL");
      await node.exited;
      await other.close();
      await directory.remove();
    }
  });
});
