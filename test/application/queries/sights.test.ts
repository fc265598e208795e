import { afterEach, describe, expect, it } from "vitest";
import { termsOf } from "../../../src/application/queries/sights.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { CHAIN_ID, SIGNER, SIGNERS, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode();
}

describe("the overview query", () => {
  it("counts transactions by state", async () => {
    const entry = await start({ settings: { explorerUrl: "https://scan.example/" } });
    for (let n = 0; n < 5; n++) await ops.create(entry);
    await world.allSettled(5);
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const view = await world.settle(entry.node.api.overview());
    expect(view).toMatchObject({
      lanes: SIGNERS.length,
      states: { CREATED: 0, ALLOCATED: 0, TRACKING: 1, STUCK: 0, CONFIRMED: 5, FAILED_FINAL: 0 },
      ...{ createdPerMinute: 6 / 5, completedPerMinute: 1 },
      oldestPending: { txId, nonce: 5, lane: { chainId: CHAIN_ID, signer: SIGNER } },
      chains: [{ chainId: CHAIN_ID, reachable: true, head: expect.any(Number), explorer: "https://scan.example" }],
    });
    expect(view.timeToFinalitySeconds?.p95).toBeGreaterThanOrEqual(view.timeToFinalitySeconds?.p50 ?? 0);
  });

  it("shows a restricted API key only its own signers, and no rates", async () => {
    const entry = await start();
    await ops.create(entry);
    await world.settle(entry.node.api.create(transfer({ signer: SIGNERS[1] })));
    await world.allSettled(2);
    const limits = { signers: new Set([SIGNERS[1] as typeof SIGNER]), chains: null };
    expect(await world.settle(entry.node.api.overview({}, limits))).toMatchObject({
      ...{ lanes: 1, states: { CONFIRMED: 1 }, createdPerMinute: null, completedPerMinute: null },
      ...{ timeToFinalitySeconds: null, oldestPending: null },
    });
  });

  it("waits until a value of the overview changes, if the request has a revision number", async () => {
    const entry = await start();
    world.holdBlocks();
    await world.clock.advance(2_000);
    const { revision } = await world.settle(entry.node.api.overview());
    const waiting = entry.node.api.overview({ revision, waitMs: 20_000 });
    await world.clock.advance(3_000);
    await ops.create(entry);
    const view = await world.settle(waiting, 3_000);
    expect(view.revision).not.toBe(revision);
    expect(view.states.ALLOCATED + view.states.TRACKING).toBe(1);
  });
});

describe("the search query", () => {
  const UUID = "019a4b7e-8a90-7cc1-b1d2-3e4f5a6b7c8d";
  it.each([
    [UUID, ["requestIds", "reservationIds", "txIds"]],
    ["019A4B7E-8A90", ["requestIds", "reservationIds", "txIds"]],
    ["019a4b7e8a90", ["requestIds", "reservationIds", "txIds"]],
    ["order-42", ["requestIds"]],
    ["7", ["nonce", "requestIds"]],
    ["#7", ["nonce", "requestIds"]],
    ["12345678", ["nonce", "requestIds", "reservationIds", "txIds"]],
    ["0xf39f", ["requestIds", "signers"]],
    ["0x", ["requestIds"]],
    [`0x${"ab".repeat(20)}`, ["requestIds", "signers"]],
    [`0x${"AB".repeat(20)}:7`, ["nonce"]],
    ["0xab 7", ["nonce"]],
    [`0x${"AB".repeat(32)}`, ["requestIds", "txHash"]],
    ["50% off_", ["requestIds"]],
    ["9-1", ["requestIds"]],
  ])("looks for the text %s only among %s", (text, looked) => {
    expect(Object.keys(termsOf(text)).sort()).toEqual(looked);
  });

  it("finds a transaction by any of its identifiers", async () => {
    const entry = await start();
    const txId = await ops.create(entry, { requestId: "order-42" });
    await world.allSettled(1);
    const find = async (q: string) => (await world.settle(entry.node.api.search({ q }))).map((each) => each);
    const [attempt] = ops.row(txId).attempts;
    for (const q of [txId, txId.slice(0, 18), attempt?.txHash ?? "", "order-4", "  order-42  ", `${SIGNER}:0`, "0"]) {
      expect(await find(q), q).toMatchObject([{ kind: "transaction", txId, nonce: 0, signer: SIGNER }]);
    }
    expect(await find(SIGNER.toUpperCase().replace("0X", "0x"))).toMatchObject([{ kind: "signer", signer: SIGNER }]);
    expect(await find("NODE-1")).toMatchObject([{ kind: "node", nodeId: "node-1" }]);
    expect(await find("nothing of this kind")).toEqual([]);
    expect(await world.refusal(entry.node.api.search({ q: "   " }))).toMatchObject({ code: "INVALID_REQUEST" });
  });

  it("finds a signer by the beginning of its name, if the key may see that signer", async () => {
    const [first, second] = SIGNERS as [typeof SIGNER, typeof SIGNER];
    const names = [
      [first, "payouts-1"],
      [second, "Payouts-2"],
    ] as const;
    const entry = await start({ node: { signerNames: new Map(names) } });
    for (const signer of [first, second]) await ops.create(entry, { signer, requestId: `payouts of ${signer}` });
    await world.allSettled(2);
    const find = async (q: string, signers: ReadonlySet<typeof SIGNER> | null = null) =>
      (await world.settle(entry.node.api.search({ q }, { signers, chains: null }))).map(({ kind, signer }) => [
        kind,
        signer,
      ]);
    expect(await find("payouts-2")).toEqual([["signer", second]]);
    expect((await find("PAYOUTS")).slice(0, 2)).toEqual([
      ["signer", first],
      ["signer", second],
    ]);
    expect(await find("payouts-2", new Set([first]))).toEqual([]);
    const [found] = await world.settle(entry.node.api.search({ q: "payouts-1" }));
    expect(found?.label).toContain("payouts-1");
  });

  // protects [Everything at once] src/adapters/postgres/statements/find.ts, src/application/queries/sights.ts
  it("matches SQL wildcards and quotes literally", async () => {
    const entry = await start();
    await ops.create(entry, { requestId: "order-42" });
    for (const q of ["order%", "order_42", "%", "_", "' OR true --", "\u{10FFFF}", "order-42\u0000"])
      expect(await world.settle(entry.node.api.search({ q })), q).toEqual([]);
  });
});

describe("the display of a lane's nonces", () => {
  it("shows final, in-flight and waiting nonces", async () => {
    const entry = await start({ settings: { inFlightWindow: 2 } });
    for (let n = 0; n < 3; n++) await ops.create(entry);
    await world.allSettled(3);
    world.holdBlocks();
    for (let n = 0; n < 5; n++) await ops.create(entry);
    await world.clock.advance(2_000);
    expect(await world.settle(entry.node.api.nonceRuler(SIGNER))).toEqual({
      lane: { chainId: CHAIN_ID, signer: SIGNER },
      ...{ from: 0, to: 7, cursor: 8, mined: expect.any(Number), minedAsOf: expect.any(Date), final: 3 },
      spans: [
        { from: 0, to: 2, kind: "final" },
        { from: 3, to: 4, kind: "inFlight" },
        { from: 5, to: 7, kind: "queued" },
      ],
    });
    expect((await world.settle(entry.node.api.nonceRuler(SIGNER, { from: 2, to: 3 }))).spans).toEqual([
      { from: 2, to: 2, kind: "final" },
      { from: 3, to: 3, kind: "inFlight" },
    ]);
  });

  // protects [Everything at once] src/application/queries/sights.ts
  it("is empty for an unused lane", async () => {
    const entry = await start();
    expect(await world.settle(entry.node.api.nonceRuler(SIGNER))).toMatchObject({ cursor: null, final: 0, spans: [] });
    const refused = async (query: object) => (await world.refusal(entry.node.api.nonceRuler(SIGNER, query))).code;
    expect(await refused({ from: 5, to: 4 })).toBe("INVALID_REQUEST");
    expect(await refused({ from: 0, to: 2_000 })).toBe("INVALID_REQUEST");
    expect(await refused({ chainId: 1 })).toBe("UNKNOWN_CHAIN");
    const stranger = entry.node.api.nonceRuler(`0x${"9".repeat(40)}`);
    expect(await world.refusal(stranger)).toMatchObject({ code: "UNKNOWN_SIGNER" });
  });

  it("is empty for a range of 2,000 nonces above the lane's next nonce", async () => {
    const entry = await start();
    await ops.create(entry);
    const far = await world.settle(entry.node.api.nonceRuler(SIGNER, { from: 1, to: 2_000 }));
    expect(far.spans).toEqual([]);
  });
});

describe("the history of the cluster", () => {
  it("lists lane takeovers and the nodes that joined and left", async () => {
    const entry = await start();
    await world.until(() => world.ownerOf(SIGNER) === "node-1");
    const other = await world.startNode();
    world.crash(entry);
    await world.until(() => SIGNERS.every((signer) => world.ownerOf(signer) === "node-2"));
    const { takeovers, nodes } = await world.settle(other.node.api.clusterHistory());
    expect(takeovers.find(({ lane }) => lane.signer === SIGNER)).toMatchObject({ from: "node-1", to: "node-2" });
    expect(nodes.map(({ nodeId, state }) => `${nodeId} ${state}`)).toEqual(["node-2 alive", "node-1 gone"]);
    const limits = { signers: new Set<typeof SIGNER>(), chains: null };
    expect((await world.settle(other.node.api.clusterHistory({}, limits))).takeovers).toEqual([]);
  });
});

describe("the signer list", () => {
  it("can be filtered by chain, by node, and by need for attention", async () => {
    const entry = await start();
    const other = await world.startNode();
    await world.clock.advance(5_000);
    const list = async (query: object) =>
      (await world.settle(entry.node.api.signers(query))).items.map(({ address }) => address);
    const [one, two] = [await list({ owner: "node-1" }), await list({ owner: "node-2" })];
    expect([...one, ...two].sort()).toEqual([...SIGNERS].sort());
    expect(two.length).toBeGreaterThan(0);
    expect(await list({ owner: "node-9" })).toEqual([]);
    expect(await list({ chainId: 1 })).toEqual([]);
    expect(await list({ chainId: CHAIN_ID })).toHaveLength(SIGNERS.length);
    expect(await list({ needs: "attention" })).toEqual([]);
    await ops.lane(other, "suspend");
    expect(await list({ needs: "attention" })).toEqual([SIGNER]);
    expect(await list({ needs: "attention", limit: 1 })).toEqual([SIGNER]);
  });

  it("shows whether a lane's lowest open transaction is held", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const headOf = async () => (await world.settle(entry.node.api.signer(SIGNER)))[0]?.headOfLine;
    expect(await headOf()).toMatchObject({ txId, held: false });
    await ops.act(entry, "suspend", { txId });
    expect(await headOf()).toMatchObject({ txId, held: true });
  });
});
