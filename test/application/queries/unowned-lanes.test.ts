/**
 * A payment on a lane that no node owns: one code, one sentence and one start on every page and node, and one alert for
 * the whole cluster.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import { anIntent } from "../../support/lane-samples.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { CHAIN_ID, SIGNER, SIGNERS, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world?.close());

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const OTHERS: readonly Address[] = SIGNERS.slice(1);

/** Starts a node that holds the key of SIGNER alone, and `others` nodes that do not hold it. */
async function start(others: number, options: WorldOptions = {}) {
  world = new World(options);
  ops = new OperatedWorld(world);
  const holder = await world.startNode({ signers: [SIGNER] });
  const rest: WorldNode[] = [];
  for (let n = 0; n < others; n++) rest.push(await world.startNode({ signers: OTHERS }));
  return { holder, rest, other: rest[0] as WorldNode };
}

/** A sent transaction of SIGNER that no block has. */
async function waiting(holder: WorldNode): Promise<string> {
  world.holdBlocks();
  return ops.sent(holder);
}

async function gone(holder: WorldNode) {
  world.crash(holder);
  const isDead = () =>
    [...world.database.state.instances.values()].some(({ nodeId, dead }) => nodeId === "node-1" && dead);
  await world.until(isDead);
}

const attention = async ({ node }: WorldNode) => (await world.settle(node.api.attention())).items;
const rowsOf = async (entry: WorldNode) => (await attention(entry)).filter(({ code }) => code === "LANE_UNOWNED");
const causeOf = async ({ node }: WorldNode, txId: string) => (await world.settle(node.api.explain(txId))).causes[0];
const laneOf = async ({ node }: WorldNode) => (await world.settle(node.api.signer(SIGNER)))[0];
const saidBy = ({ events }: WorldNode, type: "alert" | "alert.resolved") =>
  events.filter((event) => event.type === type && event.code === "LANE_UNOWNED");
const NO_KEY = "no live node holds its key";

describe("a payment on a lane without an owner", () => {
  it("is shown on every node and page with the same cause, sentence and start", async () => {
    const { holder, rest } = await start(2);
    const txId = await waiting(holder);
    await gone(holder);
    await world.clock.advance(2 * MINUTE);
    const [first] = await rowsOf(rest[0] as WorldNode);
    expect(first).toMatchObject({
      code: "LANE_UNOWNED",
      severity: "ERROR",
      chainId: CHAIN_ID,
      signer: SIGNER,
      waiting: 1,
      sentence: expect.stringContaining(NO_KEY),
      since: expect.any(Date),
    });
    for (const each of rest) {
      expect(await rowsOf(each)).toMatchObject([{ id: first?.id, since: first?.since, sentence: first?.sentence }]);
      const cause = await causeOf(each, txId);
      expect(cause).toMatchObject({ code: "LANE_UNOWNED", since: first?.since });
      expect(first?.sentence.toLowerCase()).toContain(cause?.text.toLowerCase());
      expect(await laneOf(each)).toMatchObject({ owner: null, unowned: { since: first?.since, reason: NO_KEY } });
    }
  });

  it("is one row, also if its last owner is gone and the transaction is stuck", async () => {
    const { holder, other } = await start(1, { settings: { stuckAfterMs: 10_000, repricing: null } });
    const txId = await waiting(holder);
    await world.until(() => ops.row(txId).state === "STUCK", 600_000);
    await gone(holder);
    await world.clock.advance(2 * MINUTE);
    const found = await attention(other);
    expect(found.map(({ code }) => code).toSorted()).toEqual(["LANE_UNOWNED", "NODE_VANISHED"]);
    const row = found.find(({ code }) => code === "LANE_UNOWNED");
    expect(row?.since).toEqual((await causeOf(other, txId))?.since);
  });

  it("is shown if only an intent waits, on a lane that never had an owner", async () => {
    const { other } = await start(1);
    const stranger = `0x${"c".repeat(40)}` as Address;
    const { txId, ...intent } = anIntent({ chainId: CHAIN_ID, signer: stranger });
    world.database.insertIntake({ txId, ...intent });
    await world.clock.advance(2 * MINUTE);
    expect(await rowsOf(other)).toMatchObject([{ signer: stranger, waiting: 1, since: expect.any(Date) }]);
    expect(await causeOf(other, txId)).toMatchObject({ code: "LANE_UNOWNED" });
  });

  it("ends on every page when a node acquires the lane", async () => {
    const { holder, other } = await start(1);
    const txId = await waiting(holder);
    await gone(holder);
    await world.clock.advance(2 * MINUTE);
    expect(await rowsOf(other)).toHaveLength(1);
    await world.startNode({ signers: [SIGNER] });
    await world.clock.advance(10 * SECOND);
    expect(await rowsOf(other)).toEqual([]);
    expect(await laneOf(other)).toMatchObject({ unowned: null, owner: { nodeId: "node-3" } });
    expect((await causeOf(other, txId))?.code).not.toBe("LANE_UNOWNED");
  });
});

describe("the alert about a lane without an owner", () => {
  it("is raised and resolved by one node of the cluster", async () => {
    const { holder, rest } = await start(3);
    await waiting(holder);
    await gone(holder);
    await world.clock.advance(3 * MINUTE);
    expect(rest.flatMap((each) => saidBy(each, "alert"))).toMatchObject([
      { severity: "ERROR", lane: { signer: SIGNER, chainId: CHAIN_ID }, message: expect.stringContaining(NO_KEY) },
    ]);
    await world.startNode({ signers: [SIGNER] });
    await world.clock.advance(MINUTE);
    expect(rest.flatMap((each) => saidBy(each, "alert.resolved"))).toHaveLength(1);
    expect(world.nodes.flatMap((each) => saidBy(each, "alert"))).toHaveLength(1);
  });

  it.each([
    ["a takeover", async (holder: WorldNode) => gone(holder)],
    ["a node that shuts down and hands its lanes over", (holder: WorldNode) => world.settle(holder.node.close())],
  ])("is not raised in %s", async (_, end) => {
    const { holder } = await start(1);
    await waiting(holder);
    const next = await world.startNode({ signers: SIGNERS });
    await end(holder);
    await world.clock.advance(2 * MINUTE);
    expect(world.ownerOf(SIGNER)).toBe("node-3");
    expect(world.nodes.flatMap((each) => saidBy(each, "alert"))).toEqual([]);
    expect(await rowsOf(next)).toEqual([]);
  });

  it("is not raised in a restart of the only node that holds the key", async () => {
    const { holder, other } = await start(1);
    await waiting(holder);
    await world.settle(holder.node.close());
    await world.clock.advance(40 * SECOND);
    await world.startNode({ signers: [SIGNER] });
    await world.clock.advance(2 * MINUTE);
    expect(saidBy(other, "alert")).toEqual([]);
  });

  it("is not raised when a cluster starts an hour after it was killed", async () => {
    const { holder, other } = await start(1);
    await waiting(holder);
    world.crash(holder);
    world.crash(other);
    await world.clock.advance(60 * MINUTE);
    const next = [await world.startNode({ signers: OTHERS }), await world.startNode({ signers: [SIGNER] })];
    await world.clock.advance(2 * MINUTE);
    expect(world.ownerOf(SIGNER)).toBe("node-4");
    expect(next.flatMap((each) => saidBy(each, "alert"))).toEqual([]);
  });
});

describe("a lane without an owner", () => {
  it("is no problem if all of its transactions are final", async () => {
    const { holder, other } = await start(1);
    await ops.settled(await ops.create(holder));
    await gone(holder);
    await world.clock.advance(2 * MINUTE);
    expect(await rowsOf(other)).toEqual([]);
    expect(saidBy(other, "alert")).toEqual([]);
    expect(await laneOf(other)).toMatchObject({ owner: null, unowned: null });
  });

  it("is not reported if the lane is suspended and owned", async () => {
    const { holder, other } = await start(1);
    await waiting(holder);
    await world.settle(
      holder.node.api.actOnLane({ action: "suspend", signer: SIGNER, request: { reason: "r" }, actor: "operator:a" }),
    );
    await world.clock.advance(2 * MINUTE);
    const codes = (await attention(other)).map(({ code }) => code);
    expect(codes).toContain("LANE_SUSPENDED");
    expect(codes).not.toContain("LANE_UNOWNED");
  });

  it("keeps its start if every node that knew it restarts", async () => {
    const { holder, other } = await start(1);
    const txId = await waiting(holder);
    await world.settle(holder.node.close());
    await world.clock.advance(2 * MINUTE);
    const [first] = await rowsOf(other);
    world.crash(other);
    await world.clock.advance(MINUTE);
    const next = await world.startNode({ signers: OTHERS });
    await world.clock.advance(3 * MINUTE);
    expect(first?.since).toEqual(expect.any(Date));
    expect(await rowsOf(next)).toMatchObject([{ id: first?.id, since: first?.since }]);
    expect(await causeOf(next, txId)).toMatchObject({ code: "LANE_UNOWNED", since: first?.since });
  });

  it("is dated by the end of its last owner, if no node ran since", async () => {
    const { holder, other } = await start(1);
    await waiting(holder);
    await world.settle(other.node.close());
    await world.settle(holder.node.close());
    const endMs = world.clock.now().getTime();
    await world.clock.advance(60 * MINUTE);
    const next = await world.startNode({ signers: OTHERS });
    await world.clock.advance(3 * MINUTE);
    const [row] = await rowsOf(next);
    expect(Math.abs((row?.since?.getTime() ?? 0) - endMs)).toBeLessThan(30 * SECOND);
  });

  it("is shown at once by a node that joins", async () => {
    const { holder, other } = await start(1);
    await waiting(holder);
    await gone(holder);
    await world.clock.advance(2 * MINUTE);
    const [known] = await rowsOf(other);
    const next = await world.startNode({ signers: OTHERS });
    await world.clock.advance(7 * SECOND);
    expect(await rowsOf(next)).toMatchObject([{ id: known?.id, since: known?.since }]);
    expect(await laneOf(next)).toMatchObject({ unowned: { since: known?.since } });
  });
});
