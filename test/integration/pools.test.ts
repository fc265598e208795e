/** A pool on two nodes, each of which owns one of its lanes, with real HTTP and PostgreSQL. */
import { describe, expect } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { it, OTHER_SIGNER, RECIPIENT, SIGNER } from "../support/integration.ts";
import { waitUntil } from "../support/wait-until.ts";

const POOL = { FENCEPOST_POOLS: `payouts=${SIGNER}+${OTHER_SIGNER}` };

describe("a signer pool whose lanes belong to two nodes", () => {
  it("creates one transaction if the two nodes get the same request", async ({ simulated, nodes }) => {
    const pair = [await nodes.start(simulated.url, POOL), await nodes.start(simulated.url, POOL)];
    const clients = pair.map(({ url }) => createClient({ url }));
    const [first, second] = clients as [(typeof clients)[0], (typeof clients)[0]];
    await waitUntil(async () => {
      const owners = (await first.leases()).map(({ nodeId }) => nodeId);
      return owners.length === 2 && new Set(owners).size === 2;
    }, "each node owns a lane");

    const payload = { to: RECIPIENT, value: 1n } as const;
    // A pool skips a lane that has just changed its owner until the new owner has resumed it. Probe until both lanes
    // are used. Each probe is final before the next is sent: a lane with a queue of probes would get no requests below.
    const open = new Set<string>();
    let probes = 0;
    await waitUntil(async () => {
      for (const client of clients) {
        const { txId, signer } = await client.send({ signer: { pool: "payouts" }, payload });
        await client.waitFor(txId);
        open.add(signer);
        probes++;
      }
      return open.size === 2;
    }, "both lanes take the pool's requests");
    const ids = Array.from({ length: 12 }, (_, n) => `payout-${n}`);
    const asked = ids.flatMap((requestId) =>
      clients.map((client) => client.send({ signer: { pool: "payouts" }, requestId, payload })),
    );
    const created = await Promise.all(asked);
    for (const id of ids) {
      const txIds = new Set(created.filter(({ requestId }) => requestId === id).map(({ txId }) => txId));
      expect(txIds.size, id).toBe(1);
    }
    expect(new Set(created.map(({ signer }) => signer))).toEqual(new Set([SIGNER, OTHER_SIGNER]));
    const found = await second.getByRequest({ pool: "payouts", requestId: "payout-3" });
    expect(created.map(({ txId }) => txId)).toContain(found.txId);
    expect((await first.explain(found.txId)).summary).toContain("from the pool payouts");

    const stuck = await Promise.all(
      [1, 2, 3].map(() => first.send({ signer: { pool: "payouts", stickyKey: "customer-7" }, payload })),
    );
    expect(new Set(stuck.map(({ signer }) => signer)).size).toBe(1);
    const unknown = first.send({ signer: { pool: "payroll" }, payload });
    await expect(unknown).rejects.toMatchObject({
      code: "UNKNOWN_SIGNER",
      message: expect.stringContaining("payouts"),
    });
    await waitUntil(async () => {
      const { items } = await first.list({ state: "CONFIRMED", limit: 100 });
      return items.length === probes + ids.length + stuck.length;
    }, "everything is final");
  });
});
