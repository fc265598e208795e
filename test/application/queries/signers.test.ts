import { afterEach, describe, expect, it } from "vitest";
import { SIGNER, SIGNERS, transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("signers", () => {
  it("are all there, used or not, with their lanes and what the chain says", async () => {
    world = new World();
    const { node } = await world.startNode({ signers: SIGNERS.slice(0, 2) });
    await world.settle(node.api.create(transfer()));
    await world.allSettled(1);
    const { items: views } = await world.settle(node.api.signers());
    expect(views.map(({ address }) => address).toSorted()).toEqual(SIGNERS.slice(0, 2).toSorted());
    const used = views.find(({ address }) => address === SIGNER);
    expect(used).toMatchObject({ cursor: 1, confirmed: 1, pending: 0 });
    expect(used?.owner?.nodeId).toBe("node-1");
    const unused = views.find(({ address }) => address === SIGNERS[1]);
    expect(unused).toMatchObject({ cursor: null, balance: null, reserved: 0, holes: [], headOfLine: null });
  });

  it("that were never leased are shown as that", async () => {
    world = new World();
    const { node, store } = await world.startNode();
    store.lanesAfter = async () => [];
    const { items: views } = await world.settle(node.api.signers());
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
    const { items: views } = await world.settle(node.api.signers());
    expect(views).toHaveLength(3);
    expect(views.every(({ chainCounts, balance }) => chainCounts === null && balance === null)).toBe(true);
  });

  it("come in pages, used and unused ones together, none missed and none twice", async () => {
    world = new World();
    const { node } = await world.startNode({ signers: SIGNERS.slice(0, 2) });
    await world.startNode({ signers: SIGNERS.slice(2) });
    await world.settle(node.api.create(transfer()));
    const paged: string[] = [];
    for (let after: string | null | undefined; after !== null; ) {
      const page = await world.settle(node.api.signers({ limit: 1, ...(after === undefined ? {} : { after }) }));
      expect(page.items).toHaveLength(1);
      paged.push(...page.items.map(({ address }) => address));
      after = page.next;
    }
    expect(paged).toEqual(SIGNERS.toSorted());
    await expect(world.settle(node.api.signers({ after: "elsewhere" }))).rejects.toMatchObject({
      code: "INVALID_REQUEST",
      extras: { path: "after" },
    });
  });

  // protects [Reads] src/application/queries/signers.ts, src/application/chain/counts.ts
  it("show what a loop was last told of the chain, and ask it nothing themselves", async () => {
    world = new World();
    const { node, faults } = await world.startNode();
    await world.settle(node.api.create(transfer()));
    await world.allSettled(1);
    faults.inject({ kind: "unavailable" });
    world.chain.setBalance(SIGNER, 77n);
    const { items } = await world.settle(node.api.signers());
    const [view] = await world.settle(node.api.signer(SIGNER));
    expect(view?.balance).toBeGreaterThan(77n);
    expect(view?.chainCounts?.latest).toBe(0);
    expect(items.find(({ address }) => address === SIGNER)).toMatchObject({
      balance: view?.balance,
      chainCounts: view?.chainCounts,
    });
  });

  it("say what the chain says now where one of them is asked for afresh, and nothing that it does not", async () => {
    world = new World();
    const { node, faults } = await world.startNode();
    await world.settle(node.api.create(transfer()));
    await world.allSettled(1);
    world.chain.setBalance(SIGNER, 77n);
    const asked = () => world.settle(node.api.signer(SIGNER, { fresh: true }));
    expect(await asked()).toMatchObject([{ balance: 77n, chainCounts: { latest: 1, pending: 1 } }]);
    const pendingOnly = (params: readonly unknown[]): boolean => params[1] === "pending";
    faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount", when: pendingOnly });
    expect(await asked()).toMatchObject([{ balance: 77n, chainCounts: { latest: 1, pending: null } }]);
    faults.inject({ kind: "unavailable" });
    expect(await asked()).toMatchObject([{ balance: null, chainCounts: null }]);
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

  it("whose key no node holds, and one that is no address", async () => {
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
