/**
 * A periodic pass over a chain's lanes in which one part fails: the other parts must take effect without waiting for
 * it.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import { BatchRefused } from "../../../src/ports/lane-store.ts";
import { SIGNERS, transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("a chain whose finalized block cannot be read", () => {
  it("does not stop signing and broadcasting: only outcomes wait", async () => {
    world = new World({ settings: { finality: "finalized", inFlightWindow: 2 } });
    const entry = await world.startNode();
    const when = ([tag]: readonly unknown[]) => tag === "finalized";
    const end = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockByNumber", when });
    await world.settle(Promise.all(Array.from({ length: 6 }, () => entry.node.api.create(transfer()))));
    await world.until(() => world.rows().every(({ subState }) => subState === "MINED"), 30_000);
    expect(world.database.state.completions).toEqual([]);
    end();
    world.chain.mine(100);
    await world.allSettled(6);
  });
});

describe("finality checks", () => {
  it("still decide outcomes if the number of confirmations cannot be stored", async () => {
    world = new World();
    const entry = await world.startNode();
    const commit = entry.store.commit.bind(entry.store);
    entry.store.commit = async (writes) => {
      if (writes.some(({ kind }) => kind === "confirmations")) throw new BatchRefused("no room");
      return commit(writes);
    };
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1, 30_000);
  });

  it("still decide outcomes of other lanes if the check of one lane fails", async () => {
    world = new World();
    const entry = await world.startNode();
    const [broken, other] = SIGNERS as [Address, Address];
    for (const signer of [broken, other]) await world.settle(entry.node.api.create(transfer({ signer })));
    await world.allSettled(2);
    world.holdBlocks();
    await world.settle(entry.node.api.create(transfer({ signer: broken })));
    await world.until(() => world.chain.pool.size === 1);
    world.chain.mineForeign(broken, 1);
    entry.rpc.transactionBySenderAndNonce = () => Promise.reject(new TypeError("a mistake of ours"));
    await world.clock.advance(130_000);
    world.releaseBlocks();
    await world.settle(entry.node.api.create(transfer({ signer: other })));
    await world.allSettled(3, 30_000);
  });
});

describe("receipts found while the chain's identity is not verified", () => {
  it("are looked up again as soon as the identity is verified", async () => {
    world = new World({ settings: { confirmations: 0 } });
    const entry = await world.startNode();
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1);
    world.holdBlocks();
    await world.settle(entry.node.api.create(transfer()));
    await world.until(() => world.chain.pool.size === 1);
    const { rpc } = entry;
    const found = rpc.receiptsInBlock.bind(rpc);
    rpc.receiptsInBlock = async (...args) => {
      rpc.receiptsInBlock = found;
      const end = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockByNumber", times: 1 });
      await world.clock.sleep(400);
      end();
      return found(...args);
    };
    world.chain.mine();
    await world.until(() => world.rows()[1]?.state === "CONFIRMED", 10_000);
  });
});
