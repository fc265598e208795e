import { afterEach, describe, expect, it } from "vitest";
import { SIGNER, SIGNERS, transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("the list of signers", () => {
  it("contains every signer, used or unused", async () => {
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

  it("shows no owner for a signer whose lane was never leased", async () => {
    world = new World();
    const { node, store } = await world.startNode();
    store.lanesAfter = async () => [];
    const { items: views } = await world.settle(node.api.signers());
    expect(views).toHaveLength(3);
    expect(views[0]).toMatchObject({ owner: null, token: 0, acquiredAt: null, pending: 0, suspendedBy: null });
  });

  it("shows signers of other nodes from the database", async () => {
    world = new World();
    const first = await world.startNode({ signers: SIGNERS.slice(0, 1) });
    const second = await world.startNode({ signers: SIGNERS.slice(1) });
    await world.settle(first.node.api.create(transfer()));
    const views = await world.settle(second.node.api.signer(SIGNER));
    expect(views).toMatchObject([{ address: SIGNER, owner: { nodeId: "node-1" } }]);
  });

  it("is served while the chain is unreachable, without balances and nonce counts", async () => {
    world = new World();
    const { node, faults } = await world.startNode();
    faults.inject({ kind: "unavailable" });
    await world.clock.advance(1_000);
    const { items: views } = await world.settle(node.api.signers());
    expect(views).toHaveLength(3);
    expect(views.every(({ chainCounts, balance }) => chainCounts === null && balance === null)).toBe(true);
  });

  it("is paged over used and unused signers, each exactly once", async () => {
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
  it("shows the chain values of the last periodic read, without a request to the chain", async () => {
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
    const ages = [view?.chainCounts?.asOf, view?.balanceAsOf].map((at) => world.clock.now().getTime() - Number(at));
    expect(Math.min(...ages), "the values are older than the answer").toBeGreaterThan(0);
    expect(items.find(({ address }) => address === SIGNER)).toMatchObject({
      balance: view?.balance,
      chainCounts: view?.chainCounts,
    });
  });

  it("shows current chain values if one signer is requested with `fresh`", async () => {
    world = new World();
    const { node, faults } = await world.startNode();
    await world.settle(node.api.create(transfer()));
    await world.allSettled(1);
    world.chain.setBalance(SIGNER, 77n);
    const asked = () => world.settle(node.api.signer(SIGNER, { fresh: true }));
    const asOf = world.clock.now();
    expect(await asked()).toMatchObject([
      { balance: 77n, balanceAsOf: asOf, chainCounts: { latest: 1, pending: 1, asOf } },
    ]);
    const pendingOnly = (params: readonly unknown[]): boolean => params[1] === "pending";
    faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount", when: pendingOnly });
    expect(await asked()).toMatchObject([{ balance: 77n, chainCounts: { latest: 1, pending: null } }]);
    faults.inject({ kind: "unavailable" });
    expect(await asked()).toMatchObject([{ balance: null, balanceAsOf: null, chainCounts: null }]);
  });

  it("shows no chain values for a signer of a chain that is no longer configured", async () => {
    world = new World();
    const { node, store } = await world.startNode();
    const [known] = await store.lanes(SIGNER);
    if (known !== undefined) store.lanes = async () => [{ ...known, lane: { chainId: 5, signer: SIGNER } }];
    const views = await world.settle(node.api.signer(SIGNER));
    expect(views.find(({ lane }) => lane.chainId === 5)).toMatchObject({ chainCounts: null, balance: null });
  });
});

describe("the query for one signer", () => {
  it("accepts the address in any casing", async () => {
    world = new World();
    const { node } = await world.startNode();
    const views = await world.settle(node.api.signer(`0x${SIGNER.slice(2).toUpperCase()}`));
    expect(views.map(({ address }) => address)).toEqual([SIGNER]);
  });

  it("refuses a signer whose key no node has", async () => {
    world = new World();
    const { node } = await world.startNode();
    const stranger = `0x${"9".repeat(40)}`;
    await expect(world.settle(node.api.signer(stranger))).rejects.toMatchObject({
      code: "UNKNOWN_SIGNER",
      status: 422,
    });
    await expect(world.settle(node.api.signer("me"))).rejects.toMatchObject({ extras: { path: "signer" } });
  });

  it("is UNAVAILABLE while the database is unreachable", async () => {
    world = new World();
    const { node, store } = await world.startNode();
    store.cut();
    await expect(world.settle(node.api.signer(SIGNER))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect(world.settle(node.api.signers())).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});
