/** After an interruption, the database has another history: a standby was promoted, or a backup was restored. */
import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { HistoryChanged } from "../../../src/ports/lane-store.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { CHAIN_ID, SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const create = (entry: WorldNode, overrides = {}) => world.settle(entry.node.api.create(transfer(overrides)));
const of = <T extends TelemetryEvent["type"]>({ events }: WorldNode, type: T) =>
  events.filter((event): event is Extract<TelemetryEvent, { type: T }> => event.type === type);
const rowOf = (signer = SIGNER) => [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer);

/** Waits until the node has detected the change of history and recovered its lanes. */
async function untilReconciled(entry: WorldNode, lanes = SIGNERS.length): Promise<void> {
  await world.until(() => of(entry, "lane.recovered").length >= lanes, 20_000);
}

describe("promotion of a standby without data loss", () => {
  it("stops the node, which resumes without an operator", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry);
    await world.allSettled(1);
    const [before] = of(entry, "instance.registered");
    world.database.changeHistory();
    await expect(create(entry), "the first write notices").rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(of(entry, "store.historyChanged")).toHaveLength(1);
    await untilReconciled(entry);
    expect(of(entry, "feed.epochBegun")).toEqual([{ type: "feed.epochBegun", epoch: 2, mayHaveLost: false }]);
    expect(of(entry, "instance.registered").map(({ instanceId }) => instanceId)).not.toEqual([before?.instanceId]);
    expect((await create(entry)).nonce).toBe(1);
    await world.allSettled(2);
    checkInvariants(world);
  });

  it("is noticed by a node without lanes at its next claim", async () => {
    world = new World();
    const entry = world.addNode();
    entry.store.claimLanes = async () => [];
    await world.settle(entry.node.start());
    await world.clock.advance(100);
    entry.store.claimLanes = () => Promise.reject(new HistoryChanged("another timeline"));
    await world.until(() => of(entry, "instance.registered").length === 2, 2_000);
    expect(of(entry, "store.historyChanged")).toMatchObject([{ detail: "another timeline" }]);
  });

  it("gives feed readers a 409 with the new epoch", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry);
    await world.allSettled(1);
    const { epoch, next } = await world.settle(entry.node.api.completions({ after: 0 }));
    const waiting = entry.node.api.completions({ after: next, epoch, waitMs: 30_000 });
    world.database.changeHistory();
    await expect(world.settle(waiting)).rejects.toMatchObject({
      code: "EPOCH_CHANGED",
      extras: { epoch: epoch + 1, resumeAfter: next },
    });
    await untilReconciled(entry);
    await create(entry);
    await world.allSettled(2);
    const page = await world.settle(entry.node.api.completions({ after: next, epoch: epoch + 1 }));
    expect(page.items.map(({ seq }) => seq)).toEqual([next + 1]);
  });

  it("starts only one new feed epoch, even if three nodes notice the promotion", async () => {
    world = new World();
    const nodes = [await world.startNode(), await world.startNode(), await world.startNode()];
    await world.clock.advance(5_000);
    world.database.changeHistory();
    await world.until(() => nodes.every((entry) => of(entry, "instance.registered").length === 2), 10_000);
    expect(nodes.flatMap((entry) => of(entry, "feed.epochBegun"))).toHaveLength(1);
    await world.until(() => nodes.reduce((sum, { node }) => sum + node.gauges().lanesHeld, 0) === SIGNERS.length);
    await world.until(() => SIGNERS.every((signer) => rowOf(signer)?.reconciledEpoch === 2));
    for (const signer of SIGNERS) await create(nodes[1] as WorldNode, { signer });
    await world.allSettled(SIGNERS.length);
    expect(world.database.state.feed.epoch).toBe(2);
    checkInvariants(world);
  });

  it("stops nonce allocation while the chain's transaction count cannot be read", async () => {
    world = new World();
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry);
    await world.until(() => world.chain.witness.length === 1);
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount" });
    world.chain.dropAllTransactions();
    world.database.changeHistory();
    await world.until(() => of(entry, "instance.registered").length === 2, 10_000);
    await world.clock.advance(65_000);
    await expect(create(entry)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringMatching(/compared with the chain/),
    });
    expect(world.chain.witness, "although it is due to be sent again").toHaveLength(1);
    expect(rowOf()?.reconciledEpoch).toBe(1);
    heal();
    await untilReconciled(entry);
    world.releaseBlocks();
    expect((await create(entry)).nonce).toBe(1);
    await world.allSettled(2);
    checkInvariants(world);
  });

  it("makes nodes ignore a transaction count that a second read contradicts", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry);
    await world.allSettled(1);
    let lies = 1;
    entry.faults.lieAboutNonce((honest) => (lies-- > 0 ? honest + 500 : honest));
    world.database.changeHistory();
    await untilReconciled(entry);
    expect(rowOf()?.cursor).toBe(1);
    expect((await create(entry)).nonce).toBe(1);
  });
});

describe("a database restored from a backup", () => {
  /** Creates three transactions that the network has and the restored database lacks: one mined, two pending. */
  async function lose(entry: WorldNode): Promise<void> {
    await create(entry, { requestId: "kept" });
    await world.allSettled(1);
    const backup = world.database.snapshot();
    await create(entry, { requestId: "mined, and lost" });
    await world.allSettled(2);
    world.holdBlocks();
    await create(entry, { requestId: "pending, and lost" });
    await create(entry, { requestId: "pending too" });
    await world.until(() => world.chain.witness.length === 4);
    world.database.restore(backup);
  }

  it("suspends every lane until an operator resumes the lane", async () => {
    world = new World();
    const entry = await world.startNode();
    await lose(entry);
    await untilReconciled(entry);
    const codes = of(entry, "alert").map(({ code }) => code);
    expect(codes).toEqual(
      expect.arrayContaining(["DATABASE_HISTORY_CHANGED", "COMMITS_MAY_BE_LOST", "LANE_AWAITS_OPERATOR"]),
    );
    expect(rowOf(), "mined and pending are counted").toMatchObject({ cursor: 4, suspendedBy: "HISTORY" });
    await world.clock.advance(120_000);
    await expect(create(entry)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringMatching(/operator/),
    });
    expect(await create(entry, { requestId: "kept" }), "what is known is still known").toMatchObject({
      outcome: "existing",
      nonce: 0,
    });
    expect(world.chain.witness).toHaveLength(4);

    for (const row of world.database.state.lanes.values()) row.suspendedBy = null;
    world.crash(entry);
    world.releaseBlocks();
    const heir = await world.startNode();
    await world.until(() => heir.node.gauges().lanesHeld === SIGNERS.length, 30_000);
    expect((await create(heir, { requestId: "pending too" })).nonce, "the caller's business: it was told to look").toBe(
      4,
    );
  });

  it("starts a feed epoch above every sequence number already read", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry);
    await world.allSettled(1);
    const backup = world.database.snapshot();
    await create(entry);
    await world.allSettled(2);
    const served = await world.settle(entry.node.api.completions({ after: 0 }));
    world.database.restore(backup);
    await untilReconciled(entry);
    const query = { after: served.next, epoch: served.epoch };
    await expect(world.settle(entry.node.api.completions(query))).rejects.toMatchObject({ code: "EPOCH_CHANGED" });
    const { epochStartsAfter } = world.database.state.feed;
    expect(epochStartsAfter).toBeGreaterThan(served.next);
    const left = await world.settle(entry.node.api.completions({ after: 0, epoch: served.epoch + 1 }));
    expect(left.items.map(({ seq }) => seq)).toEqual([1]);
  });

  it("does not let suspended lanes delay the intake rows of other lanes", async () => {
    world = new World();
    const entry = await world.startNode();
    world.database.changeHistory(true);
    await untilReconciled(entry);
    const [held, resumed] = SIGNERS as readonly [Address, Address];
    Object.assign(rowOf(resumed) ?? {}, { suspendedBy: null });
    world.crash(entry);
    const heir = await world.startNode();
    await world.until(() => heir.node.gauges().lanesHeld === SIGNERS.length, 30_000);
    const ports = { codec: createCodec(), entropy: createSeededEntropy(7), chainIds: [CHAIN_ID] };
    const intents = [...Array.from({ length: 250 }, () => held), resumed];
    for (const signer of intents) world.database.insertIntake(normalise(ports, transfer({ signer })));
    await world.allSettled(1);
    expect(world.rows().map(({ lane }) => lane.signer)).toEqual([resumed]);
    expect(world.database.state.intake.size).toBe(250);
  });
});
