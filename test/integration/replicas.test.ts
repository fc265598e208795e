/** Several processes that embed the library on one database: each of them accepts every send. */
import { fileURLToPath } from "node:url";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect } from "vitest";
import { createFencepost, type Fencepost, type FencepostOptions } from "../../src/index.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { it as base, KEYS, RECIPIENT } from "../support/integration.ts";
import { type FencepostProcess, spawnScript } from "../support/node-process.ts";
import { range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const THREE = [...KEYS, "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"] as const;
const SIGNERS = THREE.map((key) => privateKeyToAddress(key));
const script = fileURLToPath(new URL("../support/embedded-replica.mjs", import.meta.url));

interface Replicas {
  /** Starts a replica (a node embedded in an application) in this process. */
  here(rpc: string): Promise<Fencepost>;
  /** Starts a replica in a separate process, which sends `count` transactions by itself. */
  apart(rpc: string, count: number): Promise<FencepostProcess>;
}

const it = base.extend<{ readonly replicas: Replicas }>({
  replicas: async ({ database }, use) => {
    const ending: (() => Promise<unknown>)[] = [];
    const options = (rpc: string): FencepostOptions => ({
      databaseUrl: database.url,
      chains: [{ rpc, confirmations: 1, pollInterval: "50ms" }],
      signers: THREE,
      pools: { payouts: SIGNERS },
      ...{ leaseDuration: "3s", leaseRenewInterval: "750ms", clockSkewAllowance: "300ms", drainTimeout: "2s" },
    });
    await use({
      here: async (rpc) => {
        const fencepost = await createFencepost(options(rpc));
        ending.push(() => fencepost.close());
        return fencepost;
      },
      apart: async (rpc, count) => {
        const variables = { OPTIONS: JSON.stringify(options(rpc)), SIGNERS: SIGNERS.join(","), COUNT: String(count) };
        const child = spawnScript([script], { variables: { ...variables, PREFIX: "apart" } });
        ending.push(() => {
          child.signal("SIGKILL");
          return child.exited;
        });
        await child.ready;
        return child;
      },
    });
    await Promise.all(ending.map((end) => end()));
  },
});

/** Retries a read, or a send that has a request id, until it gets a response: a crowded machine answers late. */
async function persistently<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries === 5 || (error as { code?: string }).code !== "UNAVAILABLE") throw error;
    }
  }
}

const sentBy = (child: FencepostProcess) => [...child.stdout().matchAll(/"sent":"([^"]+)"/g)].map(([, id]) => id);
const to = (index: number, prefix: string) => ({
  ...transfer(index, prefix),
  signer: SIGNERS[index % SIGNERS.length] as `0x${string}`,
});

describe("replicas that embed the library", () => {
  // protects [Replicas that embed the library] src/application/cluster/route.ts, src/application/cluster/pending-requests.ts, src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
  it("create each transaction once", async ({ replicas, edr, database }) => {
    const both = [await replicas.here(edr.url), await replicas.here(edr.url)] as const;
    const owners = "SELECT DISTINCT owner_instance FROM fencepost.lane WHERE owner_instance IS NOT NULL";
    await waitUntil(async () => (await database.query(owners)).length === 2, "each of them owns a lane");
    // A third of the requests are sent to both replicas at once, with the same request id.
    const sends = range(150).flatMap((index) => {
      const request = to(index, "shared");
      const first = both[index % 2] as Fencepost;
      return (index % 3 === 0 ? both : [first]).map((face) => persistently(() => face.send(request)));
    });
    expect(sends).toHaveLength(200);
    const created = await Promise.all(sends);
    await untilSettled(database, 150);
    // If the owner is too slow, the caller at the other replica gets a provisional transaction id without a nonce. That
    // id must lead to the same transaction.
    const made = await Promise.all(created.map(({ txId }) => persistently(() => both[0].get(txId))));
    const byRequest = new Map(made.map((each) => [each.requestId, each]));
    created.forEach(({ requestId, nonce }, index) => {
      const { txId, nonce: given } = byRequest.get(requestId) ?? {};
      expect(made[index]).toMatchObject({ txId, nonce: given });
      if (nonce !== null) expect(nonce).toBe(given);
    });
    for (const signer of SIGNERS) {
      const own = [...byRequest.values()]
        .filter((each) => each.signer.toLowerCase() === signer.toLowerCase())
        .map(({ nonce }) => Number(nonce));
      expect(own.toSorted((a, b) => a - b)).toEqual(range(50));
    }
    const other = { ...to(1, "shared"), payload: { to: RECIPIENT, value: 77777n } } as const;
    for (const face of both) await expect(face.send(other)).rejects.toMatchObject({ code: "REQUEST_ID_REUSED" });
    await audit({ database, rpcUrl: edr.url });
    // Every operator action and reservation works for every signer at both replicas. One replica owns the lane; the
    // other enqueues the request for it in the database.
    for (const signer of SIGNERS) {
      for (const face of both) {
        expect(await face.suspend(signer, { reason: "a test" })).toMatchObject([{ suspended: true }]);
        const held = await face.send({ signer, payload: { to: RECIPIENT, value: "9" } });
        expect((await face.cancel(held.txId, { reason: "a test" })).txId).toBe(held.txId);
        const repeated = { idempotencyKey: `resume-${signer}` };
        for (const each of both) await each.resume(signer, { reason: "a test" }, repeated);
        if (face === both[1]) await face.resume(signer, { reason: "a test" });
        expect(await face.waitFor(held.txId, { timeoutMs: 30_000 })).toMatchObject({ subState: "CANCELLED" });
        const kept = await face.reserveNonce({ signer });
        expect(await face.releaseNonce(kept.reservationId)).toMatchObject({ state: "RELEASED", nonce: kept.nonce });
      }
    }
    // Creates that name a nonce or a pool also work at both replicas: the lane's owner decides, whichever replica
    // receives the request.
    for (const signer of SIGNERS) {
      const { nonce } = await both[0].send({ signer, payload: { to: RECIPIENT, value: "1" } });
      for (const [at, face] of both.entries()) {
        const next = Number(nonce) + 1 + at;
        const taken = { signer, nonce: next - 1, payload: { to: RECIPIENT, value: 2222n } } as const;
        await expect(face.send(taken)).rejects.toMatchObject({ code: "CONFLICT", nextNonce: next });
        expect(await face.send({ signer, nonce: next, payload: { to: RECIPIENT, value: "3" } })).toMatchObject({
          nonce: next,
        });
      }
    }
    const asked = range(12).map((index) => ({
      ...{ signer: { pool: "payouts" }, requestId: `pooled-${index}`, payload: { to: RECIPIENT, value: 4n } },
    }));
    const pooled = await Promise.all(asked.flatMap((request) => both.map((face) => face.send(request))));
    expect(new Set(pooled.map(({ txId }) => txId)).size).toBe(asked.length);
    // Which lanes are shortest depends on their remaining backlog, so only check that several were used.
    expect(new Set(pooled.map(({ signer }) => signer)).size).toBeGreaterThan(1);
    await untilSettled(database, 150 + 3 * 2 + 3 * 3 + 12);
    const [left] = await database.query<{ n: number }>("SELECT count(*)::int AS n FROM fencepost.left_request");
    expect(left?.n, "half of them were left for the other, and are kept for a minute").toBeGreaterThan(0);
    await audit({ database, rpcUrl: edr.url });
  });

  it("lose no accepted request if one replica is killed", async ({ replicas, edr, database }) => {
    const child = await replicas.apart(edr.url, 10_000);
    const here = await replicas.here(edr.url);
    await waitUntil(() => sentBy(child).length >= 30, "the other has sent some");
    const before = range(30).map((index) => here.send(to(index, "before")));
    child.signal("SIGKILL");
    const after = range(30).map((index) => here.send(to(index, "after")));
    // Requests to a pool may wait for the dead node. If the response is "nothing accepted" or "unknown", they are
    // retried.
    const pooled = range(20).map((index) =>
      persistently(() => here.send({ ...transfer(index, "pool"), signer: { pool: "payouts" } })),
    );
    const created = await Promise.all([...before, ...after, ...pooled]);
    await child.exited;
    expect(child.stdout()).not.toContain("NOT_LEADER");
    const outcomes = await Promise.all(created.map(({ txId }) => here.waitFor(txId, { timeoutMs: 60_000 })));
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["CONFIRMED"]));
    const stored =
      "SELECT count(*)::int AS n FROM fencepost.transaction WHERE request_id = ANY ($1) AND nonce IS NOT NULL";
    const answered = sentBy(child);
    await waitUntil(async () => {
      const [row] = await database.query<{ n: number }>(stored, [answered]);
      return row?.n === answered.length;
    }, "everything that the dead one answered has its nonce");
    const open = "SELECT 1 FROM fencepost.transaction WHERE live AND state NOT IN ('CONFIRMED', 'FAILED_FINAL')";
    const left = "SELECT 1 FROM fencepost.intake WHERE alias_of IS NULL";
    await waitUntil(
      async () => (await database.query(open)).length + (await database.query(left)).length === 0,
      "all is final",
    );
    await audit({ database, rpcUrl: edr.url });
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("accept requests for the lanes of a frozen replica", async ({ replicas, edr, database }) => {
    const child = await replicas.apart(edr.url, 0);
    const here = await replicas.here(edr.url);
    const beside = await replicas.here(edr.url);
    const owners = "SELECT DISTINCT owner_instance FROM fencepost.lane WHERE owner_instance IS NOT NULL";
    await waitUntil(async () => (await database.query(owners)).length >= 2, "several of them own lanes");
    child.signal("SIGSTOP");
    const created = await Promise.all(range(12).map((index) => here.send(to(index, "silent"))));
    const both = await Promise.all(
      range(3).flatMap((index) => [here, beside].map((face) => face.send(to(index, "both")))),
    );
    const repeated = await Promise.all(range(12).map((index) => here.send(to(index, "silent"))));
    expect(repeated.map(({ txId }) => txId)).toEqual(created.map(({ txId }) => txId));
    child.signal("SIGCONT");
    const outcomes = await Promise.all(created.map(({ txId }) => here.waitFor(txId, { timeoutMs: 60_000 })));
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["CONFIRMED"]));
    // The two ids that the replicas returned lead to the same transaction, and `final` returns its actual id.
    for (const sent of both) {
      const answered = sent.txId;
      const { txId } = await sent.final({ timeoutMs: 60_000 });
      expect(await beside.getByRequest({ signer: sent.signer, requestId: `${sent.requestId}` })).toMatchObject({
        txId,
      });
      for (const face of [here, beside]) {
        expect(await face.get(answered)).toMatchObject({ txId });
        expect((await face.explain(answered)).summary).toContain("and final");
        const late = face.cancel(answered, { reason: "too late" });
        await expect(late).rejects.toMatchObject({ code: "CONFLICT", txId });
      }
      expect(sent.id).toBe(txId);
    }
    await untilSettled(database, 15);
    await audit({ database, rpcUrl: edr.url });
  });
});
