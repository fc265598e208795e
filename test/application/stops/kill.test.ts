import { afterEach, describe, expect, it } from "vitest";
import { FencepostError } from "../../../src/domain/errors.ts";
import { type OperatedWorld, startTwo } from "../../support/operations.ts";
import { SIGNER, SIGNERS, type World, type WorldNode } from "../../support/world.ts";

const OTHER_SIGNER = SIGNERS.find((signer) => signer !== SIGNER) as (typeof SIGNERS)[number];
const ACTOR = "operator:ops";
/** Time in ms far longer than any send takes; the exact length does not matter. */
const A_WHILE_MS = 5_000;

let world: World;
let ops: OperatedWorld;
/** The node that owns the lane of SIGNER. */
let owner: WorldNode;
let other: WorldNode;
afterEach(() => world.close());

async function start(options: Parameters<typeof startTwo>[0] = {}): Promise<void> {
  ({ world, ops, owner, other } = await startTwo(options));
}

const kill = ({ node }: WorldNode, signer: string | null = null) =>
  world.settle(node.api.kill({ signer, request: { reason: "stolen" }, actor: ACTOR }));
const endKill = ({ node }: WorldNode, signer: string | null = null) =>
  world.settle(node.api.endKill({ signer, request: undefined, actor: ACTOR }));
const arrived = () => world.chain.witness.length;
const stops = (...nodes: readonly WorldNode[]) =>
  world.until(() => nodes.every(({ node }) => node.kills.inForce > 0), 1_000);
const goesOn = (...nodes: readonly WorldNode[]) =>
  world.until(() => nodes.every(({ node }) => node.kills.inForce === 0), 1_500);

/** Checks that nothing reaches the chain for as long as a send could take. */
async function expectSilence(): Promise<void> {
  const before = arrived();
  await world.clock.advance(A_WHILE_MS);
  expect(arrived()).toBe(before);
}

const resolved = ({ events }: WorldNode) =>
  events.filter((event) => event.type === "alert.resolved" && event.code === "KILLED").length;

describe("the alert of a kill", () => {
  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("is resolved once, on every node, when the last kill has ended", async () => {
    await start();
    await kill(owner, SIGNER);
    await kill(owner);
    await stops(owner, other);
    await endKill(other);
    await world.until(() => [owner, other].every(({ node }) => node.kills.inForce === 1), 1_500);
    expect([owner, other].map(resolved), "the signer is still stopped").toEqual([0, 0]);
    await endKill(owner, SIGNER);
    await goesOn(owner, other);
    await world.clock.advance(A_WHILE_MS);
    expect([owner, other].map(resolved)).toEqual([1, 1]);
  });
});

describe("a kill of all signers", () => {
  // protects [The kill switch] src/application/lane/term.ts, src/application/lane/owned-lane.ts
  it("lets every node accept creates but send nothing, until it is ended", async () => {
    await start();
    const answer = await kill(other);
    expect(answer).toEqual({
      durable: true,
      kills: [{ killId: expect.any(String), signer: null, actor: ACTOR, reason: "stolen" }],
      nodes: [{ nodeId: owner === world.nodes[0] ? "node-1" : "node-2", url: owner.url, told: true }],
    });
    const created = await Promise.all([
      ops.create(owner),
      ops.create(other),
      ops.create(owner, { signer: OTHER_SIGNER }),
    ]);
    await expectSilence();
    expect(created.map((txId) => ops.outcome(txId))).toEqual(["ALLOCATED", "ALLOCATED", "ALLOCATED"]);
    expect(await endKill(owner)).toEqual({ durable: true, kills: [], nodes: [] });
    await ops.settled(...created);
    expect(created.map((txId) => ops.outcome(txId))).toEqual(["CONFIRMED", "CONFIRMED", "CONFIRMED"]);
  });

  // protects [The kill switch] src/application/lane/term.ts, src/application/lane/owned-lane.ts
  it("stops resubmission and repricing of sent transactions, which are still tracked to finality", async () => {
    await start({ settings: { resubmitIntervalMs: 1_000 } });
    world.holdBlocks();
    const txId = await ops.sent(owner);
    await kill(owner);
    await expectSilence();
    await ops.act(other, "resubmit", { txId });
    await ops.act(owner, "reprice", { txId }).catch(() => undefined);
    await ops.act(owner, "cancel", { txId }).catch(() => undefined);
    await expectSilence();
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  it("raises an alert on every node", async () => {
    await start();
    await kill(other);
    const txId = await ops.create(owner);
    for (const { node, events } of [owner, other]) {
      const alerts = events.filter((event) => event.type === "alert" && event.code === "KILLED");
      expect(alerts).toEqual([
        expect.objectContaining({
          severity: "CRITICAL",
          message: "everything is stopped: nothing is sent until somebody ends this (operator:ops: stolen)",
        }),
      ]);
      const { causes, help } = await world.settle(node.api.explain(txId));
      expect(causes[0]).toMatchObject({ code: "KILLED", text: expect.stringContaining("operator:ops: stolen") });
      expect(help.map(({ code }) => code)).toContain("END_KILL");
      expect(node.gauges().killsInForce).toBe(1);
    }
  });

  it("is one kill even if it is requested twice", async () => {
    await start();
    const [first, second] = [await kill(owner), await kill(other)];
    expect(second.kills).toEqual(first.kills);
    await endKill(other);
    await goesOn(owner, other);
    await ops.settled(await ops.create(owner));
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("applies again even if the node has not yet read the end of the previous kill", async () => {
    await start();
    await kill(owner);
    await world.database.connect().endKills({ signer: null, actor: ACTOR, reason: "over" }, []);
    expect(owner.node.kills.inForce, "it has not read the end").toBe(1);
    expect(await kill(owner)).toMatchObject({ durable: true, kills: [{ signer: null }] });
    const txId = await ops.create(owner);
    await expectSilence();
    expect([owner, other].map(({ node }) => node.kills.inForce)).toEqual([1, 1]);
    await endKill(other);
    await ops.settled(txId);
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("is listed once by every node, even if it is requested repeatedly", async () => {
    await start();
    for (const node of [owner, other, owner]) expect((await kill(node)).kills).toHaveLength(1);
    expect((await kill(owner, SIGNER)).kills.map(({ signer }) => signer)).toEqual([null, SIGNER]);
    await world.until(() => [owner, other].every(({ node }) => node.gauges().killsInForce === 2), 1_000);
    const alerts = owner.events.filter((event) => event.type === "alert" && event.code === "KILLED");
    expect(alerts, "one for each signer").toHaveLength(2);
    expect((await endKill(other)).kills.map(({ signer }) => signer)).toEqual([SIGNER]);
  });
});

describe("a kill of one signer", () => {
  it("does not stop other signers, and is not ended together with another kill", async () => {
    await start();
    await kill(owner, SIGNER.toUpperCase().replace("0X", "0x"));
    const [stopped, running] = [await ops.create(owner), await ops.create(owner, { signer: OTHER_SIGNER })];
    await ops.settled(running);
    await kill(other);
    expect((await endKill(other)).kills).toMatchObject([{ signer: SIGNER }]);
    await expectSilence();
    expect(ops.outcome(stopped)).toBe("ALLOCATED");
    await endKill(other, SIGNER);
    await ops.settled(stopped);
  });

  it("is refused if the signer is not an address or the request body is invalid", async () => {
    await start();
    const refused = async (more: object) => {
      const asking = owner.node.api.kill({ signer: null, request: undefined, actor: ACTOR, ...more });
      const error = await asking.catch((reason: unknown) => reason);
      return error instanceof FencepostError ? error.code : error;
    };
    expect(await refused({ signer: "0x12" })).toBe("INVALID_REQUEST");
    expect(await refused({ request: { resaon: "slip" } })).toBe("INVALID_REQUEST");
    expect(await refused({ request: { reason: 7 } })).toBe("INVALID_REQUEST");
    expect(owner.node.kills.inForce).toBe(0);
  });
});

describe("a kill during a database or network failure", () => {
  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("reaches a node with a hanging database within a second", async () => {
    await start();
    owner.store.pause();
    const { durable, nodes } = await kill(other);
    expect({ durable, told: nodes.map(({ told }) => told) }).toEqual({ durable: true, told: [true] });
    await stops(owner);
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts, src/adapters/postgres/statements/node-instance.ts
  it("reaches an isolated node through the database within a second", async () => {
    await start();
    world.network.silence(owner.url);
    const asked = other.node.api.kill({ signer: null, request: undefined, actor: ACTOR });
    await stops(owner, other);
    expect((await world.settle(asked)).nodes).toMatchObject([{ told: false }]);
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("stops all nodes even if the receiving node's database hangs", async () => {
    await start();
    other.store.pause();
    const atMs = world.clock.monotonicMs();
    const asked = other.node.api.kill({ signer: null, request: undefined, actor: ACTOR });
    expect(other.node.kills.inForce).toBe(1);
    await stops(owner);
    expect(await world.settle(asked)).toMatchObject({ durable: false });
    expect(world.clock.monotonicMs() - atMs).toBeLessThanOrEqual(250);
    await world.until(() => world.database.state.kills.size === 1);
    other.store.resume();
    await world.until(() => other.events.length > 0 && world.database.state.kills.size === 1);
    expect(await kill(other)).toMatchObject({ durable: true });
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("survives a crash of the receiving node", async () => {
    await start();
    const storeOf = [owner, other].map(({ store }) => store);
    for (const store of storeOf) store.pause();
    await world.settle(other.node.api.kill({ signer: null, request: undefined, actor: ACTOR }));
    world.crash(other);
    expect(world.database.state.kills.size).toBe(0);
    owner.store.resume();
    await world.until(() => world.database.state.kills.size === 1, 2_000);
    expect(owner.node.kills.inForce).toBe(1);
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("keeps all sends stopped until its end is durable", async () => {
    await start();
    await kill(owner);
    await ops.create(owner);
    owner.store.cut();
    const error = await world.settle(
      owner.node.api.endKill({ signer: null, request: undefined, actor: ACTOR }).catch((e) => e),
    );
    expect(error).toMatchObject({ code: "UNAVAILABLE" });
    expect(owner.node.kills.inForce).toBe(1);
    await expectSilence();
  });
});

describe("a requested kill", () => {
  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("survives a restart of every process", async () => {
    await start();
    await kill(owner);
    const txId = await ops.create(owner);
    world.crash(owner);
    world.crash(other);
    const started = await world.startNode();
    await world.until(() => world.ownerOf(SIGNER) === "node-3", 60_000);
    await expectSilence();
    expect(started.node.kills.inForce).toBe(1);
    await endKill(started);
    await ops.settled(txId);
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("survives a database restore that lost its row", async () => {
    await start();
    const backup = world.database.snapshot();
    await kill(owner);
    world.database.restore(backup);
    expect(world.database.state.kills.size).toBe(0);
    await world.until(() => world.database.state.kills.size === 1, 30_000);
    expect(owner.node.kills.inForce).toBe(1);
  });

  // protects [The kill switch] src/application/cluster/kill-switch.ts, src/adapters/postgres/statements/kill.ts
  it("is recognised as ended if it reaches a node only after its end", async () => {
    await start();
    const { kills } = await kill(owner);
    await endKill(owner);
    await goesOn(owner, other);
    for (const each of kills) other.node.kills.receive(each);
    expect(other.node.kills.inForce).toBe(1);
    await goesOn(other);
    await ops.settled(await ops.create(other));
  });
});

describe("a node that has not read the kills yet", () => {
  // protects [The kill switch] src/application/cluster/kill-switch.ts
  it("sends nothing, since a kill may be in force", async () => {
    await start();
    const fresh = world.addNode();
    expect(fresh.node.kills.holds(SIGNER)).toBe(true);
    await world.settle(fresh.node.start());
    expect(fresh.node.kills.holds(SIGNER)).toBe(false);
  });
});
