import { afterEach, describe, expect, it } from "vitest";
import { FencepostError } from "../../../src/domain/errors.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import type { CommitFault } from "../../doubles/memory-store.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, SIGNERS, TO, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

async function confirmOne(entry: WorldNode): Promise<void> {
  await world.settle(entry.node.api.create(transfer()));
  await world.allSettled(1);
}

describe("a commit that fails", () => {
  it.each<CommitFault>(["unavailable", "unknown-lost"])(
    "during nonce allocation makes the create fail with 503 (%s)",
    async (fault) => {
      world = new World();
      const entry = await world.startNode();
      await confirmOne(entry);
      entry.store.failNextCommit(fault);
      await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(world.rows().length).toBe(1);
      await world.settle(entry.node.api.create(transfer()));
      await world.allSettled(2);
      checkInvariants(world);
    },
  );

  it("makes the create return `outcome: unknown` if the commit may have been applied", async () => {
    world = new World();
    const entry = await world.startNode();
    await confirmOne(entry);
    entry.store.failNextCommit("unknown-committed");
    const failure = await world.settle(entry.node.api.create(transfer({ requestId: "lost" }))).catch((error) => error);
    expect(failure).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown", txId: expect.any(String) } });
    await world.allSettled(2);
    const again = await world.settle(entry.node.api.create(transfer({ requestId: "lost" })));
    expect(again).toMatchObject({ outcome: "existing", txId: failure.extras.txId, nonce: 1 });
    checkInvariants(world);
  });

  it("still suspends the lane if the database applied the suspend", async () => {
    world = new World();
    const entry = await world.startNode();
    await confirmOne(entry);
    entry.store.failNextCommit("unknown-committed");
    const actionRequest = {
      action: "suspend",
      signer: SIGNER,
      request: { reason: "key rotation" },
      actor: "operator:ops",
    } as const;
    await expect(world.settle(entry.node.api.actOnLane(actionRequest))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const sent = world.chain.witness.length;
    await world.settle(entry.node.api.create(transfer()));
    await world.clock.advance(10_000);
    expect(await entry.node.api.signer(SIGNER)).toMatchObject([{ suspendedBy: "OPERATOR" }]);
    expect(world.chain.witness).toHaveLength(sent);
  });

  it("is retried without an error for the caller if the database is busy", async () => {
    world = new World();
    const entry = await world.startNode();
    await confirmOne(entry);
    entry.store.failNextCommit("busy");
    entry.store.failNextCommit("busy");
    expect(await world.settle(entry.node.api.create(transfer()))).toMatchObject({ outcome: "created", nonce: 1 });
    await world.allSettled(2);
    checkInvariants(world);
  });

  it.each([1, 2, 3, 4, 5, 6])(
    "does not stop the confirmation of transactions (write %i after a create)",
    async (nth) => {
      for (const fault of ["unavailable", "unknown-lost", "unknown-committed"] as const) {
        world = new World({ settings: { resubmitIntervalMs: 3_000 } });
        const entry = await world.startNode();
        await confirmOne(entry);
        const commit = entry.store.commit.bind(entry.store);
        let writes = 0;
        entry.store.commit = (batch) => {
          if (++writes === nth + 1) entry.store.failNextCommit(fault);
          return commit(batch);
        };
        await world.settle(Promise.all(Array.from({ length: 5 }, () => entry.node.api.create(transfer()))));
        await world.allSettled(6);
        await world.clock.advance(5_000);
        checkInvariants(world);
        await world.close();
      }
    },
  );
});

describe("a database that is unavailable when a node starts", () => {
  it("only delays the start if the database returns within seconds", async () => {
    world = new World();
    const first = await world.startNode();
    await confirmOne(first);
    world.crash(first);
    const entry = world.addNode();
    entry.store.cut();
    const starting = entry.node.start();
    await world.clock.advance(4_000);
    entry.store.heal();
    await world.settle(starting);
    await world.settle(createWhenReady(entry));
    await world.allSettled(2);
    checkInvariants(world);
  });

  it("makes the start fail after a lease duration", async () => {
    world = new World();
    const entry = world.addNode();
    entry.store.cut();
    await expect(world.settle(entry.node.start(), 15_000)).rejects.toThrow();
  });

  it("delays only the claims of lanes if the first claims fail", async () => {
    world = new World();
    const entry = world.addNode();
    const claim = entry.store.claimLanes.bind(entry.store);
    let refusals = 3;
    entry.store.claimLanes = (...asked) => {
      if (refusals-- > 0) return Promise.reject(new StoreUnavailable("slow"));
      return claim(...asked);
    };
    await world.settle(entry.node.start());
    await world.until(() => entry.node.gauges().lanesHeld === SIGNERS.length);
  });
});

describe("lanes that are locked when a node tries to claim them", () => {
  it("are claimed later even without a hint", async () => {
    world = new World();
    const entry = world.addNode();
    const claim = entry.store.claimLanes.bind(entry.store);
    let locked = true;
    entry.store.claimLanes = async (...asked) => (locked ? [] : claim(...asked));
    await world.settle(entry.node.start());
    expect(entry.node.gauges().lanesHeld).toBe(0);
    locked = false;
    await world.until(() => entry.node.gauges().lanesHeld === SIGNERS.length, 11_000);
  });
});

describe("a database outage", () => {
  it("is reported as 503 with Retry-After", async () => {
    world = new World();
    const entry = await world.startNode();
    await confirmOne(entry);
    await world.settle(Promise.all(Array.from({ length: 20 }, () => entry.node.api.create(transfer()))));
    entry.store.cut();
    const failure = await world.settle(entry.node.api.create(transfer())).catch((error) => error);
    expect(failure).toBeInstanceOf(FencepostError);
    expect(failure).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
    await expect(
      world.settle(entry.node.api.transaction("0190f5c2-0000-7000-8000-000000000000")),
    ).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await world.settle(entry.node.api.readiness())).toMatchObject({ ready: false, database: false });
    await world.clock.advance(4_000);
    entry.store.heal();
    await world.settle(createWhenReady(entry));
    await world.allSettled(22);
    checkInvariants(world);
  });

  it("makes the node register as a new instance if the outage outlasts the lease", async () => {
    world = new World();
    const entry = await world.startNode();
    await confirmOne(entry);
    world.holdBlocks();
    await world.settle(Promise.all(Array.from({ length: 5 }, () => entry.node.api.create(transfer()))));
    await world.until(() => world.chain.witness.length >= 6);
    world.chain.dropAllTransactions();
    entry.store.cut();
    await world.clock.advance(10_000);
    const sent = world.chain.witness.length;
    await world.clock.advance(120_000);
    expect(world.chain.witness.length).toBe(sent);
    entry.store.heal();
    world.releaseBlocks();
    await world.allSettled(6, 600_000);
    checkInvariants(world);
    expect(entry.events.filter(({ type }) => type === "instance.registered").length).toBe(2);
  });
});

describe("a request id", () => {
  it("makes one transaction if it is sent a hundred times at once", async () => {
    world = new World();
    const entry = await world.startNode();
    const answers = await world.settle(
      Promise.all(Array.from({ length: 100 }, () => entry.node.api.create(transfer({ requestId: "once" })))),
    );
    expect(new Set(answers.map(({ txId, nonce }) => `${txId} ${nonce}`)).size).toBe(1);
    expect(answers.filter(({ outcome }) => outcome === "created").length).toBe(1);
    expect(world.rows().length).toBe(1);
  });

  it("is matched regardless of the letter case of the signer's address, also within one batch", async () => {
    world = new World();
    const entry = await world.startNode();
    const upper = `0x${SIGNER.slice(2).toUpperCase()}`;
    const results = await world.settle(
      entry.node.api.createBatch([
        transfer({ requestId: "a" }),
        transfer({ requestId: "a", signer: upper }),
        transfer({ requestId: "a", payload: { to: TO, value: "2", gas: 21_000, gasPrice: 1e9 } }),
        transfer({ requestId: "b", signer: SIGNERS[1] }),
      ]),
    );
    expect(results[0]).toMatchObject({ outcome: "created", nonce: 0 });
    expect(results[1]).toMatchObject({ outcome: "existing", nonce: 0 });
    expect(results[2]).toMatchObject({ code: "REQUEST_ID_REUSED" });
    expect(results[3]).toMatchObject({ outcome: "created", nonce: 0 });
  });

  it("returns its existing transaction, even if the create would be refused now", async () => {
    world = new World();
    const entry = await world.startNode();
    await world.settle(entry.node.api.create(transfer({ requestId: "kept" })));
    await world.allSettled(1);
    world.chain.setBalance(SIGNER, 0n);
    expect(await world.settle(entry.node.api.create(transfer({ requestId: "kept" })))).toMatchObject({
      outcome: "existing",
    });
    await expect(world.settle(entry.node.api.create(transfer({ requestId: "new" })))).rejects.toMatchObject({
      code: "SUBMISSION_REJECTED",
      extras: { reason: "INSUFFICIENT_FUNDS" },
    });
  });
});

describe("bounded lane queues", () => {
  it("refuse creates with 429 beyond the limit", async () => {
    world = new World({ node: { queueLimit: 50 } });
    const entry = await world.startNode();
    const results = await world.settle(entry.node.api.createBatch(Array.from({ length: 80 }, () => transfer())));
    expect(results.slice(0, 50).every((result) => !(result instanceof FencepostError))).toBe(true);
    expect(results.slice(50).every((result) => result instanceof FencepostError && result.code === "QUEUE_FULL")).toBe(
      true,
    );
    await world.allSettled(50);
    checkInvariants(world);
  });
});

async function createWhenReady(entry: WorldNode): Promise<void> {
  for (;;) {
    try {
      await entry.node.api.create(transfer({ requestId: "patient" }));
      return;
    } catch {
      await world.clock.sleep(200);
    }
  }
}
