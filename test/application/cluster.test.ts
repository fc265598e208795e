import { afterEach, describe, expect, it } from "vitest";
import { FencepostError } from "../../src/domain/errors.ts";
import type { Address } from "../../src/domain/lane.ts";
import { StoreUnavailable } from "../../src/ports/lane-store.ts";
import { createSeededEntropy } from "../doubles/seeded-entropy.ts";
import { checkInvariants } from "../support/invariants.ts";
import { SIGNER, SIGNERS, transfer, World, type WorldNode } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

const TWENTY = Array.from({ length: 20 }, (_, index) => `0x${(index + 16).toString(16).padStart(40, "c")}` as Address);

async function startNodes(count: number): Promise<readonly WorldNode[]> {
  const nodes: WorldNode[] = [];
  for (let index = 0; index < count; index++) nodes.push(await world.startNode());
  await world.until(() => isBalanced(nodes), 30_000);
  return nodes;
}

function lanesOf(node: WorldNode): number {
  return node.node.gauges().lanesHeld;
}

/** Every lane is held, and nobody holds more than its share. */
function isBalanced(nodes: readonly WorldNode[]): boolean {
  const held = nodes.map(lanesOf);
  const lanes = world.database.state.lanes.size;
  return held.reduce((sum, each) => sum + each, 0) === lanes && Math.max(...held) <= Math.ceil(lanes / nodes.length);
}

function tokens(): readonly number[] {
  return [...world.database.state.lanes.values()].map(({ token }) => token);
}

/** How often the lane that moved most was taken since. */
function mostMoves(before: readonly number[]): number {
  return Math.max(...tokens().map((token, lane) => token - (before[lane] as number)));
}

/** A node that joins and is slow to take anything by itself. */
async function joinSlowly(): Promise<WorldNode> {
  const joining = world.addNode();
  joining.store.claimLanes = async () => [];
  await world.settle(joining.node.start());
  return joining;
}

function consecutive(signers: readonly Address[]): void {
  for (const signer of signers) {
    const nonces = world
      .rows()
      .filter(({ lane }) => lane.signer === signer)
      .map(({ nonce }) => nonce);
    expect(nonces).toEqual(nonces.map((_, index) => index));
  }
}

describe("creates sent to any node", () => {
  it("reach the owner: consecutive nonces, nothing refused, and 95 of 100 guesses right", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(3);
    const entropy = createSeededEntropy(7);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(entropy.random() * list.length)] as T;
    for (let round = 0; round < 40; round++) {
      const creates = Array.from({ length: 50 }, () => pick(nodes).node.api.create(transfer({ signer: pick(TWENTY) })));
      await world.settle(Promise.all(creates));
    }
    await world.allSettled(2_000, 600_000);
    consecutive(TWENTY);
    checkInvariants(world);
    const forwards = nodes.flatMap(({ events }) => events.filter((event) => event.type === "forward"));
    expect(forwards.length).toBeGreaterThan(500);
    expect(forwards.filter(({ result }) => result === "hit").length / forwards.length).toBeGreaterThanOrEqual(0.95);
  });

  it("in basic mode are sent on by the client itself", async () => {
    world = new World({ signers: TWENTY, node: { mode: "basic" } });
    const nodes = await startNodes(3);
    const byUrl = new Map(nodes.map((node) => [node.url, node]));
    const send = async (node: WorldNode, signer: Address): Promise<void> => {
      const answer = await node.node.api.create(transfer({ signer })).catch((error: FencepostError) => error);
      if (!(answer instanceof FencepostError)) return;
      expect(answer.code).toBe("NOT_LEADER");
      await send(byUrl.get(answer.extras.ownerUrl ?? "") as WorldNode, signer);
    };
    await world.settle(
      Promise.all(Array.from({ length: 300 }, (_, n) => send(nodes[n % 3] as WorldNode, TWENTY[n % 20] as Address))),
    );
    await world.allSettled(300, 600_000);
    consecutive(TWENTY);
  });

  it("whose answer is lost on the way back are told again, and are one transaction, with or without a request id", async () => {
    world = new World();
    const nodes = await startNodes(2);
    for (const requestId of ["named", undefined]) {
      for (const fault of ["lostReply", "lostRequest"] as const) {
        const away = nodes.find((node) => !isOwner(node, SIGNER)) as WorldNode;
        world.network.inject(fault);
        const { requestId: _, ...bare } = transfer();
        const request = requestId === undefined ? bare : { ...bare, requestId: `${requestId}-${fault}` };
        expect(await world.settle(away.node.api.create(request))).toMatchObject({ outcome: "created" });
      }
    }
    expect(world.rows().length).toBe(4);
    await world.allSettled(4);
    checkInvariants(world);
  });

  it("for a signer whose key no node holds are refused; for one that only another node holds, forwarded", async () => {
    world = new World();
    const first = await world.startNode({ signers: SIGNERS.slice(0, 1) });
    await world.startNode({ signers: SIGNERS.slice(1, 2) });
    await world.clock.advance(1_000);
    await world.settle(first.node.api.create(transfer({ signer: SIGNERS[1] })));
    const unknown = first.node.api.create(transfer({ signer: SIGNERS[2] }));
    await expect(world.settle(unknown)).rejects.toMatchObject({ code: "UNKNOWN_SIGNER" });
    expect(world.rows().length).toBe(1);
  });

  it.each(["basic", "worker-queue"] as const)(
    "(%s) for a signer of a node that has just joined are known at once",
    async (mode) => {
      world = new World({ node: { mode } });
      const first = await world.startNode({ signers: SIGNERS.slice(0, 1) });
      const joined = await world.startNode({ signers: SIGNERS.slice(1, 2) });
      const answer = await world
        .settle(first.node.api.create(transfer({ signer: SIGNERS[1] })))
        .catch((error: FencepostError) => error);
      const expected =
        mode === "basic" ? { code: "NOT_LEADER", extras: { ownerUrl: joined.url } } : { outcome: "created" };
      expect(answer).toMatchObject(expected);
    },
  );

  it("for a signer that another node may hold, while that cannot be asked, are not called unknown", async () => {
    world = new World();
    const first = await world.startNode({ signers: SIGNERS.slice(0, 1) });
    first.store.cut();
    const asked = first.node.api.create(transfer({ signer: SIGNERS[1] }));
    await expect(world.settle(asked)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("hand-over", () => {
  it("that the database does not answer leaves no lane without an owner: it is had again, and handed over later", async () => {
    world = new World({ signers: TWENTY });
    const first = await world.startNode();
    await world.settle(Promise.all(TWENTY.map((signer) => first.node.api.create(transfer({ signer })))));
    const release = first.store.releaseLane.bind(first.store);
    let failures = 3;
    first.store.releaseLane = async (fence) => {
      if (failures-- > 0) throw new StoreUnavailable("no answer");
      return release(fence);
    };
    const second = await world.startNode();
    await world.until(() => isBalanced([first, second]), 30_000);
    expect(failures).toBeLessThan(0);
    await world.allSettled(TWENTY.length, 600_000);
    checkInvariants(world);
  });

  it("on shutdown: no create fails, none waits longer than 250 ms", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(3);
    const leaving = nodes[0] as WorldNode;
    const waits: number[] = [];
    const steady = keepSending(nodes, waits);
    await world.clock.advance(500);
    const closed = leaving.node.close();
    await world.settle(closed, 30_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    expect(waits.length).toBeGreaterThan(300);
    expect(lanesOf(leaving)).toBe(0);
    await world.allSettled(waits.length, 600_000);
    consecutive(TWENTY);
    checkInvariants(world);
  });

  it("to a node that joins: it gets its share while creates go on unharmed", async () => {
    world = new World({ signers: TWENTY });
    const nodes = [...(await startNodes(2))];
    const waits: number[] = [];
    const steady = keepSending(nodes, waits);
    nodes.push(await world.startNode());
    await world.until(() => isBalanced(nodes), 30_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    await world.allSettled(waits.length, 600_000);
    consecutive(TWENTY);
    checkInvariants(world);
  });

  it("to a node that is slow to take its share moves no lane twice: the node that gave one away sends creates after it", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(2);
    const before = tokens();
    const joining = await joinSlowly();
    const waits: number[] = [];
    const steady = keepSending(nodes, waits);
    await world.until(() => isBalanced([...nodes, joining]), 30_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(mostMoves(before)).toBe(1);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    await world.allSettled(waits.length, 600_000);
    checkInvariants(world);
  });

  it("to a node that crashes as soon as it has joined: what it never took is taken back, once, and no create fails", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(1);
    const before = tokens();
    world.crash(await joinSlowly());
    const waits: number[] = [];
    const steady = keepSending(nodes, waits);
    await world.clock.advance(12_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(Math.max(...waits)).toBeGreaterThan(250);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_250);
    expect(mostMoves(before)).toBe(1);
    await world.allSettled(waits.length, 600_000);
    checkInvariants(world);
  });

  it("of a lane whose release failed is tried again at once, not after a lease", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(1);
    const [giver] = nodes as [WorldNode];
    const release = giver.store.releaseLane.bind(giver.store);
    giver.store.releaseLane = () => Promise.reject(new StoreUnavailable("the database is away"));
    const joined = await world.startNode();
    await world.clock.advance(2_000);
    expect(lanesOf(joined)).toBe(0);
    giver.store.releaseLane = release;
    const atMs = world.clock.monotonicMs();
    await world.until(() => isBalanced([giver, joined]), 30_000);
    expect(world.clock.monotonicMs() - atMs).toBeLessThanOrEqual(5_000);
  });

  it("from a node that lost the chain for a lease, to one that has it", async () => {
    world = new World();
    const nodes = await startNodes(2);
    const cut = nodes.find((node) => isOwner(node, SIGNER)) as WorldNode;
    cut.faults.inject({ kind: "unavailable" });
    await world.until(() => lanesOf(cut) === 0, 30_000);
    const created = await world.settle(cut.node.api.create(transfer()));
    expect(created.outcome).toBe("created");
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("takeover", () => {
  it("of a crashed node's lanes in fair shares, within lease duration + 1 s", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(4);
    const crashed = nodes[0] as WorldNode;
    const others = nodes.slice(1);
    const atMs = world.clock.monotonicMs();
    world.crash(crashed);
    await world.until(() => isBalanced(others), 30_000);
    expect(world.clock.monotonicMs() - atMs).toBeLessThanOrEqual(11_000);
  });

  it("of everything at once, after a database that was away for longer than the lease: spread evenly", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(3);
    for (const { store } of nodes) store.cut();
    await world.clock.advance(15_000);
    for (const { store } of nodes) store.heal();
    await world.until(() => isBalanced(nodes), 30_000);
    await world.settle(Promise.all(TWENTY.map((signer) => nodes[0]?.node.api.create(transfer({ signer })))));
    await world.allSettled(20);
    consecutive(TWENTY);
  });
});

function isOwner(node: WorldNode, signer: Address): boolean {
  const row = [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer);
  const owner = row?.owner === null || row === undefined ? undefined : world.database.state.instances.get(row.owner);
  return owner?.url === node.url;
}

/** A caller that sends one create after another to nodes that listen, and notes how long each took. */
function keepSending(nodes: readonly WorldNode[], waits: number[]): { stop(): void; readonly ended: Promise<void> } {
  let stopped = false;
  const caller = async (offset: number): Promise<void> => {
    for (let n = offset; !stopped; n++) {
      const startedMs = world.clock.monotonicMs();
      await (nodes[n % nodes.length] as WorldNode).node.api.create(transfer({ signer: TWENTY[n % 20] as Address }));
      waits.push(world.clock.monotonicMs() - startedMs);
      await world.clock.sleep(20);
    }
  };
  const ended = Promise.all([0, 1, 2].map(caller)).then(() => undefined);
  ended.catch(() => undefined);
  return {
    stop: () => {
      stopped = true;
    },
    ended,
  };
}
