import { afterEach, describe, expect, it } from "vitest";
import { SIGNER, SIGNERS, transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("signers", () => {
  it("are all there, used or not, with their lanes and what the chain says", async () => {
    world = new World();
    const { node } = await world.startNode({ signers: SIGNERS.slice(0, 2) });
    world.chain.setBalance(SIGNERS[1] ?? SIGNER, 77n);
    await world.settle(node.api.create(transfer()));
    await world.allSettled(1);
    const views = await world.settle(node.api.signers());
    expect(views.map(({ address }) => address).toSorted()).toEqual(SIGNERS.slice(0, 2).toSorted());
    const used = views.find(({ address }) => address === SIGNER);
    expect(used).toMatchObject({ cursor: 1, confirmed: 1, pending: 0, chainCounts: { latest: 1, pending: 1 } });
    expect(used?.owner?.nodeId).toBe("node-1");
    const unused = views.find(({ address }) => address === SIGNERS[1]);
    expect(unused).toMatchObject({ cursor: null, balance: 77n, reserved: 0, holes: [], headOfLine: null });
  });

  it("that nobody ever leased are shown as that", async () => {
    world = new World();
    const { node, store } = await world.startNode();
    store.lanes = async () => [];
    const views = await world.settle(node.api.signers());
    expect(views).toHaveLength(3);
    expect(views[0]).toMatchObject({ owner: null, token: 0, acquiredAt: null, pending: 0, suspendedBy: null });
  });

  it("of other nodes are shown where the database knows them", async () => {
    world = new World();
    const first = await world.startNode({ signers: SIGNERS.slice(0, 1) });
    const second = await world.startNode({ signers: SIGNERS.slice(1) });
    await world.settle(first.node.api.create(transfer()));
    const views = await world.settle(second.node.api.signer(SIGNER));
    expect(views).toMatchObject([{ address: SIGNER, owner: { nodeId: "node-1" } }]);
  });

  it("are shown while the chain is away, without what only it knows", async () => {
    world = new World();
    const { node, faults } = await world.startNode();
    faults.inject({ kind: "unavailable" });
    await world.clock.advance(1_000);
    const views = await world.settle(node.api.signers());
    expect(views).toHaveLength(3);
    expect(views.every(({ chainCounts, balance }) => chainCounts === null && balance === null)).toBe(true);
  });

  it("have no counts where one of the two is missing", async () => {
    world = new World();
    const { node, faults } = await world.startNode();
    const pendingOnly = (params: readonly unknown[]): boolean => params[1] === "pending";
    faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount", when: pendingOnly });
    const [view] = await world.settle(node.api.signer(SIGNER));
    expect(view?.chainCounts).toBeNull();
    expect(view?.balance).not.toBeNull();
  });

  it("of a chain that is no longer configured are shown without it", async () => {
    world = new World();
    const { node, store } = await world.startNode();
    const [known] = await store.lanes(SIGNER);
    if (known !== undefined) store.lanes = async () => [{ ...known, lane: { chainId: 5, signer: SIGNER } }];
    const views = await world.settle(node.api.signer(SIGNER));
    expect(views.find(({ lane }) => lane.chainId === 5)).toMatchObject({ chainCounts: null, balance: null });
  });
});

describe("one signer", () => {
  it("in any casing", async () => {
    world = new World();
    const { node } = await world.startNode();
    const views = await world.settle(node.api.signer(`0x${SIGNER.slice(2).toUpperCase()}`));
    expect(views.map(({ address }) => address)).toEqual([SIGNER]);
  });

  it("that nobody holds, and one that is no address", async () => {
    world = new World();
    const { node } = await world.startNode();
    const stranger = `0x${"9".repeat(40)}`;
    await expect(world.settle(node.api.signer(stranger))).rejects.toMatchObject({
      code: "UNKNOWN_SIGNER",
      status: 422,
    });
    await expect(world.settle(node.api.signer("me"))).rejects.toMatchObject({ extras: { path: "signer" } });
  });

  it("is 503 while the database is away", async () => {
    world = new World();
    const { node, store } = await world.startNode();
    store.cut();
    await expect(world.settle(node.api.signer(SIGNER))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect(world.settle(node.api.signers())).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});
