import { describe, expect } from "vitest";
import { type Address, createClient, FencepostApiError } from "../../src/client/index.ts";
import { createFencepost } from "../../src/index.ts";
import { audit, storedTransactions } from "../support/audit.ts";
import { it, KEYS, OTHER_SIGNER, RECIPIENT, SIGNER } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { parseExposition } from "../support/prometheus-text.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const SIGNERS = [SIGNER, OTHER_SIGNER];

/** Waits until every node reports that the two lanes are owned by different nodes. */
async function spread(nodes: readonly NodeProcess[]): Promise<Map<string, NodeProcess>> {
  const owners = await waitUntil(async () => {
    const leases = await (nodes[0] as NodeProcess).client.leases();
    return new Set(leases.map(({ nodeId }) => nodeId)).size === 2 ? leases : null;
  }, "each node owns a lane");
  return new Map(owners.map(({ signer, nodeId }) => [signer, find(nodes, nodeId)]));
}

function find(nodes: readonly NodeProcess[], nodeId: string): NodeProcess {
  return nodes.find((node) => node.nodeId === nodeId) as NodeProcess;
}

async function forwards({ url }: NodeProcess): Promise<Record<string, number>> {
  const { samples } = parseExposition(await (await fetch(`${url}/metrics`)).text());
  const counted = samples.filter(({ name }) => name === "fencepost_forward_total");
  return Object.fromEntries(counted.map(({ labels, value }) => [labels.result, value]));
}

describe("two nodes in separate processes", () => {
  it("accept every kind of create for each other's lanes", async ({ edr, nodes, database }) => {
    const pair = [await nodes.start(edr.url), await nodes.start(edr.url)];
    const owners = await spread(pair);
    const created = await Promise.all(
      range(40).map((n) => {
        const create = n % 2 === 0 ? pricedTransfer(n) : transfer(n);
        return (pair[n % 2] as NodeProcess).client.send({ ...create, signer: SIGNERS[(n >> 1) % 2] as Address });
      }),
    );
    const batch = range(10).map((n) => ({ ...pricedTransfer(100 + n), signer: SIGNERS[n % 2] as Address }));
    const results = await (pair[0] as NodeProcess).client.sendBatch(batch);
    expect(results.map(({ status }) => status)).toEqual(batch.map(() => 202));
    for (const signer of SIGNERS) {
      const nonces = (await storedTransactions(database)).filter((row) => row.signer === signer.toLowerCase());
      expect(nonces.length).toBe(25);
    }
    const ids = [...created, ...results].flatMap((each) => ("txId" in each ? [each.txId] : []));
    expect(ids.length).toBe(50);
    await Promise.all(ids.map((txId, n) => (pair[(n + 1) % 2] as NodeProcess).client.waitFor(txId)));
    for (const node of owners.values()) expect((await forwards(node)).hit).toBeGreaterThan(0);
    await audit({ database, rpcUrl: edr.url });
  });

  it("discover each other: both list the same nodes and leases", async ({ edr, nodes }) => {
    const pair = [await nodes.start(edr.url), await nodes.start(edr.url)] as const;
    await spread(pair);
    const [seen, alsoSeen] = await Promise.all(pair.map(({ client }) => client.nodes()));
    expect(seen?.map(({ nodeId, url, mode, lanes }) => ({ nodeId, url, mode, lanes }))).toEqual(
      pair.map(({ nodeId, url }) => ({ nodeId, url, mode: "worker-queue", lanes: 1 })),
    );
    expect(alsoSeen?.map(({ instanceId }) => instanceId)).toEqual(seen?.map(({ instanceId }) => instanceId));
    const leases = await pair[1].client.leases();
    expect(leases.map(({ signer }) => signer).sort()).toEqual([...SIGNERS].sort());
    expect(leases.every(({ fencingToken }) => fencingToken >= 1)).toBe(true);
  });

  it("return the responses of the lane's owner", async ({ edr, nodes }) => {
    const pair = [await nodes.start(edr.url), await nodes.start(edr.url)];
    const owners = await spread(pair);
    const stranger = pair.find((node) => node !== owners.get(SIGNER)) as NodeProcess;
    const first = await stranger.client.send(transfer(1));
    expect(await stranger.client.send(transfer(1))).toMatchObject({ txId: first.txId, nonce: first.nonce });
    const codes = await Promise.all(
      [
        { ...transfer(1), payload: { to: SIGNER, value: 2n } },
        { ...transfer(2), payload: { to: SIGNER, value: 10n ** 30n } },
      ].map((create) =>
        stranger.client.send(create).then(
          () => "taken",
          (error: FencepostApiError) => error.code,
        ),
      ),
    );
    expect(codes).toEqual(["REQUEST_ID_REUSED", "SUBMISSION_REJECTED"]);
  });

  it("refuse a create for the other node's lane in basic mode", async ({ edr, nodes }) => {
    const basic = { FENCEPOST_MODE: "basic" };
    const pair = [await nodes.start(edr.url, basic), await nodes.start(edr.url, basic)];
    const owner = (await spread(pair)).get(SIGNER) as NodeProcess;
    const stranger = pair.find((node) => node !== owner) as NodeProcess;
    const error = await stranger.client.send(transfer(1)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FencepostApiError);
    const { problem } = error as FencepostApiError;
    expect(problem).toMatchObject({ code: "NOT_LEADER", ownerUrl: owner.url });
    expect(await createClient({ url: [stranger.url, owner.url] }).send(transfer(1))).toMatchObject({ nonce: 0 });
    const other = createClient({ url: stranger.url, repeat: false }).send(transfer(2));
    await expect(other).rejects.toMatchObject({ code: "NOT_LEADER", ownerUrl: owner.url });
  });
});

describe("a node embedded in another process", () => {
  it("forwards its creates to a reachable node", async ({ edr, nodes, database }) => {
    const embedded = await createFencepost({
      databaseUrl: database.url,
      chains: [{ rpc: edr.url, confirmations: 1, pollInterval: "50ms" }],
      signers: KEYS,
    });
    try {
      const service = await nodes.start(edr.url);
      await waitUntil(async () => {
        const leases = await service.client.leases();
        return leases.length === 2 && leases.every(({ nodeId }) => nodeId === service.nodeId);
      }, "the service owns both lanes");
      const urls = (await service.client.nodes()).map(({ url }) => url);
      expect(urls.sort()).toEqual(["", service.url]);
      const value = 10n ** 15n;
      const { txId } = await embedded.send({ signer: SIGNER, payload: { to: RECIPIENT, value, gas: 21_000n } });
      expect((await embedded.waitFor(txId)).payload.value).toBe(String(value));
      expect(await service.client.send(transfer(1))).toMatchObject({ nonce: 1 });
    } finally {
      await embedded.close();
    }
  });
});
