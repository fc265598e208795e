import { afterEach, describe, expect, it } from "vitest";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { POLL_MS, SIGNER, World, type WorldNode } from "../../support/world.ts";

let world: World;
let operated: OperatedWorld;
afterEach(() => world.close());

async function start({ elsewhere }: { readonly elsewhere?: Faults } = {}): Promise<WorldNode> {
  world = new World({ signers: [SIGNER] });
  operated = new OperatedWorld(world);
  const second = elsewhere === undefined ? {} : { elsewhere: { chain: world.chain, faults: elsewhere } };
  const entry = await world.startNode(second);
  await operated.settled(await operated.create(entry));
  return entry;
}

/** Makes an endpoint report the same false transaction count until the node believes it. */
async function pushedTo(entry: WorldNode, count: number): Promise<void> {
  entry.faults.lieAboutNonce(() => count);
  await world.clock.advance(60_000);
  const txId = await operated.create(entry);
  await world.until(() => operated.row(txId).state === "TRACKING");
  expect(operated.row(txId).nonce).toBe(count);
}

function cursor(): number | null | undefined {
  return [...world.database.state.lanes.values()][0]?.cursor;
}

describe("realigning a lane's next nonce with the chain", () => {
  it("lowers a next nonce that a false transaction count had raised", async () => {
    const entry = await start();
    world.database.state.lanes.forEach((lane) => {
      lane.cursor = 600;
    });
    await world.settle(entry.node.close());
    const next = await world.startNode();
    const [view] = await operated.lane(next, "realign");
    expect(view).toMatchObject({ cursor: 1 });
    const txId = await operated.create(next);
    expect(operated.row(txId).nonce).toBe(1);
    await operated.settled(txId);
    const [lane] = world.database.state.lanes.values();
    expect(lane?.decisions[0]).toMatchObject({ action: "realign", actor: "operator:ops", reason: "maintenance" });
  });

  it("does not lower the next nonce below the requested nonce", async () => {
    const entry = await start();
    world.database.state.lanes.forEach((lane) => {
      lane.cursor = 600;
    });
    expect(await operated.lane(entry, "realign", { nonce: 42 })).toMatchObject([{ cursor: 42 }]);
    expect(await operated.lane(entry, "realign", { nonce: 50 })).toMatchObject([{ cursor: 42 }]);
  });

  it("sets no next nonce of a signer that has none yet, whatever nonce is requested or counted", async () => {
    world = new World({ signers: [SIGNER] });
    operated = new OperatedWorld(world);
    const entry = await world.startNode();
    await expect(operated.lane(entry, "realign", { nonce: 2 })).rejects.toMatchObject({ code: "CONFLICT" });
    expect(cursor()).toBeNull();
    const txId = await operated.create(entry);
    expect(operated.row(txId).nonce).toBe(0);
    await operated.settled(txId);
  });

  it("never frees a nonce that may have been sent", async () => {
    const entry = await start();
    world.holdBlocks();
    await pushedTo(entry, 600);
    entry.faults.heal();
    expect(await operated.lane(entry, "realign", { nonce: 0 })).toMatchObject([{ cursor: 601 }]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/operations/lane-actions.ts
  it("never lowers the next nonce below the chain's nonce count", async () => {
    const entry = await start();
    world.holdBlocks();
    world.chain.mineForeign(SIGNER, 2);
    world.chain.injectForeign(SIGNER);
    world.database.state.lanes.forEach((lane) => {
      lane.cursor = 600;
    });
    expect(await operated.lane(entry, "realign", { nonce: 0 })).toMatchObject([{ cursor: 4 }]);
  });

  it("changes nothing while the chain cannot be read", async () => {
    const entry = await start();
    world.database.state.lanes.forEach((lane) => {
      lane.cursor = 600;
    });
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount" });
    await expect(operated.lane(entry, "realign")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(cursor()).toBe(600);
  });

  // protects [Keys of the node, other chains, comparison] src/application/operations/lane-actions.ts
  it("changes nothing while an endpoint lags or does not respond", async () => {
    const elsewhere = new Faults();
    const entry = await start({ elsewhere });
    elsewhere.pinHead(0);
    world.database.state.lanes.forEach((lane) => {
      lane.cursor = 600;
    });
    await expect(operated.lane(entry, "realign")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    elsewhere.heal();
    const back = elsewhere.inject({ kind: "unavailable" });
    await expect(operated.lane(entry, "realign")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(cursor()).toBe(600);
    back();
    elsewhere.pinHead(0);
    world.clock.after(2 * POLL_MS, () => elsewhere.pinHead(null));
    expect(await operated.lane(entry, "realign")).toMatchObject([{ cursor: 1 }]);
  });

  it("accepts an equal nonce count from an endpoint that is one block behind", async () => {
    const elsewhere = new Faults();
    const entry = await start({ elsewhere });
    elsewhere.trail(1);
    world.holdBlocks();
    world.database.state.lanes.forEach((lane) => {
      lane.cursor = 600;
    });
    expect(await operated.lane(entry, "realign")).toMatchObject([{ cursor: 1 }]);
  });

  it.each([-1, 1.5, "7", null])("refuses the nonce %j", async (nonce) => {
    const entry = await start();
    await expect(operated.lane(entry, "realign", { nonce })).rejects.toMatchObject({
      code: "INVALID_REQUEST",
      extras: { path: "nonce" },
    });
  });

  it("is the only lane action that accepts a nonce", async () => {
    const entry = await start();
    await expect(operated.lane(entry, "suspend", { nonce: 1 })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  });
});
