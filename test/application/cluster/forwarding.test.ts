import { afterEach, describe, expect, it } from "vitest";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import type { ForwardedCreate } from "../../../src/ports/peers.ts";
import { deferred } from "../../support/deferred.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { CHAIN_ID, SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

/** Requests on their way from the node that received them to the owner, when something fails on the way. */

let world: World;
afterEach(() => world.close());

const PATIENCE_MS = 4_000;
const TWENTY = Array.from({ length: 20 }, (_, index) => `0x${(index + 16).toString(16).padStart(40, "c")}` as Address);

const lanesOf = ({ node }: WorldNode): number => node.gauges().lanesHeld;

async function startNodes(count: number): Promise<readonly WorldNode[]> {
  const nodes: WorldNode[] = [];
  for (let index = 0; index < count; index++) nodes.push(await world.startNode());
  const lanes = world.database.state.lanes;
  await world.until(() => Math.max(...nodes.map(lanesOf)) <= Math.ceil(lanes.size / count), 30_000);
  await world.until(() => nodes.reduce((sum, node) => sum + lanesOf(node), 0) === lanes.size, 30_000);
  return nodes;
}

function instanceOf(signer: Address): string {
  const row = [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer);
  if (row?.owner === null || row === undefined) throw new Error("no node owns the lane");
  return row.owner;
}

function ownerOf(nodes: readonly WorldNode[], signer: Address): WorldNode {
  const url = world.database.state.instances.get(instanceOf(signer))?.url;
  return nodes.find((node) => node.url === url) as WorldNode;
}

function asForwarded(n: number, signer: Address): ForwardedCreate {
  const txId = `019a4b7e-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
  return { txId, owner: null, request: { ...transfer({ signer }) } };
}

async function timed(create: Promise<unknown>): Promise<{ readonly answer: unknown; readonly tookMs: number }> {
  const startedMs = world.clock.monotonicMs();
  const answer = await world.settle(create.catch((error: unknown) => error));
  return { answer, tookMs: world.clock.monotonicMs() - startedMs };
}

describe("concurrent creates forwarded to the same node", () => {
  it("are retried for each lane separately", async () => {
    world = new World({ signers: TWENTY, settings: { nonceStateTimeoutMs: 0 } });
    const nodes = await startNodes(2);
    const [asked, other] = nodes as [WorldNode, WorldNode];
    const [slow, quick] = TWENTY.filter((signer) => ownerOf(nodes, signer) === other) as [Address, Address];
    for (const signer of [slow, quick]) await world.settle(other.node.api.create(transfer({ signer })));
    const counted = other.rpc.transactionCount.bind(other.rpc);
    other.rpc.transactionCount = (signer, tag) =>
      signer === slow ? new Promise(() => undefined) : counted(signer, tag);
    const hanging = timed(asked.node.api.create(transfer({ signer: slow })));
    const { answer } = await timed(asked.node.api.create(transfer({ signer: quick })));
    expect(answer).toMatchObject({ outcome: "created", nonce: 1 });
    expect((await hanging).answer).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
  });

  it("are sent in one request if they are a batch over many lanes", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(2);
    const [asked, other] = nodes as [WorldNode, WorldNode];
    const theirs = TWENTY.filter((signer) => ownerOf(nodes, signer) === other);
    const batch = Array.from({ length: 100 }, (_, n) => transfer({ signer: theirs[n % theirs.length] as Address }));
    const results = await world.settle(asked.node.api.createBatch(batch));
    expect(results.every((result) => !(result instanceof FencepostError))).toBe(true);
    expect(world.network.forwards).toEqual([{ to: other.url, count: 100, repeat: false }]);
  });

  // protects [Attacks] src/application/stages/1-create/create.ts, src/adapters/postgres/rows/transaction-fields.ts
  it("each keep the name of the API key that sent them", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const asked = nodes.find((node) => node !== ownerOf(nodes, SIGNER)) as WorldNode;
    const owners = ["shop", null, "wallet"];
    const create = (owner: string | null) => asked.node.api.create(transfer(), owner);
    const made = await world.settle(Promise.all(owners.map(create)));
    const records = made.map(({ txId }) => asked.node.api.transaction(txId));
    expect((await Promise.all(records)).map(({ owner }) => owner)).toEqual(owners);
    const { reservation } = await world.settle(asked.node.api.reserveNonce({ signer: SIGNER }, "wallet"));
    expect(await asked.node.api.reservation(reservation.reservationId)).toMatchObject({ owner: "wallet" });
  });

  it("are sent in one request even if they come from many callers", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(2);
    const [asked, other] = nodes as [WorldNode, WorldNode];
    const theirs = TWENTY.filter((signer) => ownerOf(nodes, signer) === other);
    const requests = Array.from({ length: 60 }, (_, n) => transfer({ signer: theirs[n % theirs.length] as Address }));
    const answers = await world.settle(Promise.all(requests.map((request) => asked.node.api.create(request))));
    expect(answers.map(({ requestId }) => requestId)).toEqual(requests.map(({ requestId }) => requestId));
    expect(world.network.forwards).toEqual([{ to: other.url, count: 60, repeat: false }]);
  });

  it("are split into several requests if one request cannot hold them", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const owner = ownerOf(nodes, SIGNER);
    const asked = nodes.find((node) => node !== owner) as WorldNode;
    const batch = (n: number) => asked.node.api.createBatch(Array.from({ length: n }, () => transfer()));
    await world.settle(Promise.all([batch(600), batch(600), batch(300)]));
    expect(world.network.forwards.map(({ count }) => count)).toEqual([600, 900]);
    expect(world.rows().map(({ nonce }) => nonce)).toEqual(Array.from({ length: 1_500 }, (_, n) => n));
  });
});

describe("a create at a node that no longer owns the lane", () => {
  it("is accepted by another node if the first node is shutting down", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const leaving = ownerOf(nodes, SIGNER);
    const staying = nodes.find((node) => node !== leaving) as WorldNode;
    // The node that keeps running claims none of the lanes that the other node released. So it receives the forwarded
    // create for a lane without an owner.
    const claim = staying.store.claimLanes.bind(staying.store);
    staying.store.claimLanes = async () => [];
    const closing = leaving.node.close();
    await world.until(() => lanesOf(leaving) === 0);
    const [result] = await world.settle(leaving.node.create([asForwarded(1, SIGNER)], { repeat: false }));
    expect(result).toMatchObject({ code: "NOT_LEADER" });
    expect(lanesOf(leaving)).toBe(0);
    const { answer, tookMs } = await timed(staying.node.api.create(transfer()));
    expect(answer).toMatchObject({ outcome: "created" });
    expect(tookMs).toBeLessThanOrEqual(250);
    staying.store.claimLanes = claim;
    await world.settle(closing);
    await world.allSettled(1);
    checkInvariants(world);
  });

  it("gets NOT_LEADER without an owner URL if the node's lease expired", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const cut = ownerOf(nodes, SIGNER);
    cut.store.cut();
    await world.clock.advance(9_500);
    const [result] = await world.settle(cut.node.create([asForwarded(1, SIGNER)], { repeat: false }));
    expect(result).toMatchObject({ code: "NOT_LEADER", extras: { ownerUrl: null } });
    expect(world.rows()).toEqual([]);
  });

  it("is stored once if the node was fenced while the create was queued", async () => {
    world = new World();
    const nodes = await startNodes(3);
    const fenced = ownerOf(nodes, SIGNER);
    const [first, second] = nodes.filter((node) => node !== fenced) as [WorldNode, WorldNode];
    // Both nodes have cached which node owns the lane, before the owner changes.
    await world.settle(first.node.api.create(transfer()));
    const instanceId = instanceOf(SIGNER);
    const admin = world.database.connect();
    const counter = world.database.state.instances.get(instanceId)?.counter as number;
    expect(await admin.declareDead(instanceId, counter, "stood-still")).toBe(true);
    const instances = [...world.database.state.instances.values()];
    const heirId = instances.find(({ url }) => url === second.url)?.instanceId as string;
    await admin.acquireLane({ chainId: CHAIN_ID, signer: SIGNER }, heirId);
    const answers = await world.settle(
      Promise.all([fenced.node.api.create(transfer()), first.node.api.create(transfer())]),
    );
    expect(answers.map(({ outcome }) => outcome)).toEqual(["created", "created"]);
    expect(fenced.events.filter(({ type }) => type === "lease.fenced").length).toBeGreaterThan(0);
    await world.allSettled(3);
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([0, 1, 2]);
    checkInvariants(world);
  });
});

/** Cuts the node off from the database until another node owns its lane. */
async function untilTakenFrom(paused: WorldNode, nodes: readonly WorldNode[]): Promise<void> {
  paused.store.cut();
  await world.until(() => ownerOf(nodes, SIGNER) !== paused, 30_000);
  paused.store.heal();
}

describe("a create queued on a node that was paused past its lease", () => {
  it("is forwarded to the new owner after any delay", async () => {
    world = new World();
    const prepared = deferred();
    const resumed = deferred();
    const failpoint = async (name: string): Promise<void> => {
      if (name !== "create.prepared") return;
      prepared.resolve();
      await resumed.promise;
    };
    const nodes = [await world.startNode({ failpoint }), await world.startNode({ failpoint })];
    await world.until(() => nodes.every((node) => lanesOf(node) > 0), 30_000);
    const paused = ownerOf(nodes, SIGNER);
    const startedMs = world.clock.monotonicMs();
    const create = paused.node.api.create(transfer());
    await world.settle(prepared.promise);
    await untilTakenFrom(paused, nodes);
    expect(world.clock.monotonicMs() - startedMs).toBeGreaterThan(PATIENCE_MS);
    resumed.resolve();
    const { answer, tookMs } = await timed(create);
    expect(tookMs).toBeLessThanOrEqual(250);
    expect(answer).toMatchObject({ outcome: "created", nonce: 0 });
    await world.allSettled(1);
    checkInvariants(world);
  });

  it("is forwarded even if the write had already begun", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const paused = ownerOf(nodes, SIGNER);
    const writing = deferred();
    const resumed = deferred();
    const commit = paused.store.commit.bind(paused.store);
    paused.store.commit = async () => {
      writing.resolve();
      await resumed.promise;
      throw new StoreUnavailable("terminating connection due to idle-in-transaction timeout");
    };
    const create = paused.node.api.create(transfer());
    await world.settle(writing.promise);
    await untilTakenFrom(paused, nodes);
    paused.store.commit = commit;
    resumed.resolve();
    const { answer } = await timed(create);
    expect(answer).toMatchObject({ outcome: "created", nonce: 0 });
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("a forwarded create that gets no response", () => {
  it("is retried once before the caller gets an unknown outcome", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const owner = ownerOf(nodes, SIGNER);
    const asked = nodes.find((node) => node !== owner) as WorldNode;
    world.network.silence(owner.url);
    const { answer, tookMs } = await timed(asked.node.api.create(transfer()));
    expect(answer).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown", txId: expect.any(String) } });
    expect(tookMs).toBeLessThanOrEqual(PATIENCE_MS + 20);
    expect(world.network.forwards).toEqual([
      { to: owner.url, count: 1, repeat: false },
      { to: owner.url, count: 1, repeat: true },
    ]);
  });

  it("is sent once to the next owner if the first node is dead", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const dying = ownerOf(nodes, SIGNER);
    const asked = nodes.find((node) => node !== dying) as WorldNode;
    // The owner performs the create, its response never leaves, and then its lease expires.
    dying.store.cut();
    world.network.silence(dying.url);
    await world.clock.advance(9_000);
    const { answer } = await timed(asked.node.api.create(transfer()));
    expect(answer).toMatchObject({ outcome: "created", nonce: 0 });
    expect(world.network.forwards.length).toBe(1);
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("a live owner that this node cannot reach", () => {
  it("is named by its URL in the error", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const owner = ownerOf(nodes, SIGNER);
    const asked = nodes.find((node) => node !== owner) as WorldNode;
    world.network.hangUp(owner.url);
    const { answer } = await timed(asked.node.api.create(transfer()));
    expect(answer).toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining(owner.url) });
    expect(world.rows()).toEqual([]);
  });
});

describe("a signer whose key only one node holds", () => {
  it("stays known if that node cannot reach the chain", async () => {
    world = new World();
    const holder = await world.startNode({ signers: SIGNERS.slice(0, 1) });
    const other = await world.startNode({ signers: SIGNERS.slice(1, 2) });
    await world.settle(other.node.api.create(transfer()));
    holder.faults.inject({ kind: "unavailable" });
    await world.clock.advance(15_000);
    expect(await world.settle(other.node.api.create(transfer()))).toMatchObject({ outcome: "created", nonce: 1 });
    const { answer } = await timed(other.node.api.create(transfer({ signer: SIGNERS[2] })));
    expect(answer).toMatchObject({ code: "UNKNOWN_SIGNER" });
  });

  it("is reported as UNAVAILABLE while that node is shutting down", async () => {
    world = new World();
    const holder = await world.startNode({ signers: SIGNERS.slice(0, 1) });
    const other = await world.startNode({ signers: SIGNERS.slice(1, 2) });
    await world.clock.advance(1_000);
    const closing = holder.node.close();
    await world.clock.advance(1_000);
    const { answer } = await timed(other.node.api.create(transfer()));
    expect(answer).toMatchObject({ code: "UNAVAILABLE" });
    await world.settle(closing);
    await world.clock.advance(1_000);
    const { answer: later } = await timed(other.node.api.create(transfer()));
    expect(later).toMatchObject({ code: "UNKNOWN_SIGNER" });
  });
});
