import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { CHAIN_ID, TO, transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const entropy = createSeededEntropy(99);

function intent(overrides: Parameters<typeof transfer>[0] = {}): Intent {
  return normalise({ codec: createCodec(), entropy, chainIds: [CHAIN_ID] }, transfer(overrides));
}

describe("creates inserted into the intake table", () => {
  it("are processed by the owner in call order", async () => {
    world = new World();
    const intents = Array.from({ length: 300 }, () => intent());
    for (const each of intents) world.database.insertIntake(each);
    const entry = await world.startNode();
    await world.allSettled(300);
    expect(world.rows().map(({ txId }) => txId)).toEqual(intents.map(({ txId }) => txId));
    expect(world.database.state.intake.size).toBe(0);
    checkInvariants(world);
    const [first] = world.rows();
    expect(first?.history.slice(0, 2)).toMatchObject([
      { event: "accept" },
      { event: "allocate", fromState: "CREATED" },
    ]);
    expect(entry.events.some(({ type }) => type === "nonce.allocated")).toBe(true);
  });

  it("become an alias of the transaction that has the same request id", async () => {
    world = new World();
    const entry = await world.startNode();
    const original = await world.settle(entry.node.api.create(transfer({ requestId: "same" })));
    const repeat = intent({ requestId: "same" });
    const reuse = intent({ requestId: "same", payload: { to: TO, value: "5", gas: 21_000, gasPrice: "2000000000" } });
    world.database.insertIntake(repeat);
    world.database.insertIntake(reuse);
    await world.allSettled(2);
    expect((await world.settle(entry.node.api.transaction(repeat.txId))).txId).toBe(original.txId);
    expect(await world.settle(entry.node.api.transaction(reuse.txId))).toMatchObject({
      state: "FAILED_FINAL",
      subState: "REQUEST_ID_REUSED",
      nonce: null,
    });
  });

  it("become FAILED_FINAL/REJECTED if they are refused", async () => {
    world = new World();
    const doomed = `0x${"dd".repeat(20)}` as const;
    world.chain.revertCallsTo(doomed, "0x");
    const refused = intent({ payload: { to: doomed, value: 0 } });
    const fine = intent();
    world.database.insertIntake(refused);
    world.database.insertIntake(fine);
    const entry = await world.startNode();
    await world.allSettled(2);
    const found = await world.settle(entry.node.api.transaction(refused.txId));
    expect(found).toMatchObject({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null });
    expect(await world.settle(entry.node.api.transaction(fine.txId))).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    const feed = await world.settle(entry.node.api.completions({ after: 0 }));
    expect(feed.items.map(({ txId, state }) => [txId, state])).toContainEqual([refused.txId, "FAILED_FINAL"]);
  });

  it("wait while the chain is unavailable", async () => {
    world = new World();
    const entry = await world.startNode();
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1);
    const heal = entry.faults.inject({ kind: "unavailable" });
    const bare = intent({ payload: { to: TO, value: 1 } });
    const priced = intent();
    world.database.insertIntake(bare);
    world.database.insertIntake(priced);
    await world.clock.advance(10_000);
    expect(world.database.state.intake.size).toBe(2);
    heal();
    await world.allSettled(3);
    expect(
      world
        .rows()
        .map(({ txId }) => txId)
        .slice(1),
    ).toEqual([bare.txId, priced.txId]);
    checkInvariants(world);
  });
});
