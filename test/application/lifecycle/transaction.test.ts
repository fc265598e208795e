import { afterEach, describe, expect, it } from "vitest";
import { SIGNER, transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("one transaction", () => {
  it("goes from create to CONFIRMED, with every state change in its history", async () => {
    world = new World();
    const { node } = await world.startNode();
    const created = await world.settle(node.api.create(transfer({ requestId: "42" })));
    expect(created).toMatchObject({ outcome: "created", nonce: 0, state: "ALLOCATED", requestId: "42" });
    await world.allSettled(1);
    const found = await world.settle(node.api.transaction(created.txId, ["history", "confirmations"]));
    expect(found).toMatchObject({ state: "CONFIRMED", subState: null, nonce: 0, submitAttempts: 1, lastError: null });
    expect(found.receipt).toMatchObject({ status: "success", txHash: found.txHash });
    expect(found.history?.map(({ event }) => event)).toEqual(["allocate", "sign", "broadcast", "mine", "confirm"]);
    expect(found.confirmations?.length).toBeGreaterThanOrEqual(2);
    const feed = await world.settle(node.api.completions({ after: 0 }));
    expect(feed.items).toMatchObject([{ seq: 1, txId: created.txId, state: "CONFIRMED", settled: true, nonce: 0 }]);
    expect(world.chain.account(SIGNER).nonce).toBe(1);
  });

  it("becomes FAILED_FINAL/REVERTED with its receipt if it reverts on chain", async () => {
    world = new World();
    world.chain.revertMined(() => true);
    const { node } = await world.startNode();
    const { txId } = await world.settle(node.api.create(transfer()));
    await world.allSettled(1);
    const found = await world.settle(node.api.transaction(txId));
    expect(found).toMatchObject({ state: "FAILED_FINAL", subState: "REVERTED", receipt: { status: "reverted" } });
  });
});

describe("many transactions of one signer", () => {
  it("get consecutive nonces if they are created at once", async () => {
    world = new World();
    const { node } = await world.startNode();
    const created = await world.settle(Promise.all(Array.from({ length: 1_000 }, () => node.api.create(transfer()))));
    expect(created.map(({ nonce }) => nonce).sort((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 1_000 }, (_, index) => index),
    );
    await world.allSettled(1_000);
    expect(world.rows().every(({ state }) => state === "CONFIRMED")).toBe(true);
    expect(world.chain.witness.length).toBe(1_000);
    expect(world.chain.witness.map(({ nonce }) => nonce)).toEqual(Array.from({ length: 1_000 }, (_, index) => index));
  });
});
