/**
 * A signer's key service is unreachable for the lane's owner and reachable for another node: the lane moves there, at
 * most once in ten leases.
 */
import { afterEach, describe, expect, it } from "vitest";
import { KeysAway } from "../../../src/application/cluster/keys-away.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { type SignedTransaction, SignerAway, SigningRefused } from "../../../src/ports/signer.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;

const LEASE_MS = 10_000;

interface Pair {
  readonly first: WorldNode;
  readonly second: WorldNode;
  readonly signer: Address;
}

/** Two nodes with every key, and a lane that was assigned to the first node. */
async function pair(): Promise<Pair> {
  world = new World();
  const first = await world.startNode();
  const second = await world.startNode();
  await world.clock.advance(LEASE_MS);
  const signer = SIGNERS.find((each) => world.ownerOf(each) === "node-1");
  if (signer === undefined) throw new Error("the first node was given no lane");
  return { first, second, signer };
}

/** From now on, this node's signer fails to sign with this key. Counts the signing requests and the signatures made. */
function takeAway({ signer }: WorldNode, key: Address) {
  const sign = signer.sign.bind(signer);
  const state = { failed: 0, signed: 0, isAway: true };
  signer.sign = async (address, transactions) => {
    if (address !== key) return sign(address, transactions);
    if (!state.isAway) {
      state.signed++;
      return sign(address, transactions);
    }
    state.failed++;
    throw new Error("connection refused");
  };
  return state;
}

/** The successive owners of the lane within `ms` milliseconds. */
async function ownersOver(signer: Address, ms: number): Promise<readonly (string | undefined)[]> {
  const owners = [world.ownerOf(signer)];
  for (let passed = 0; passed < ms; passed += 500) {
    await world.clock.advance(500);
    const owner = world.ownerOf(signer);
    if (owner !== undefined && owner !== owners.at(-1)) owners.push(owner);
  }
  return owners;
}

const keysAwayOf = async (nodeId: string) =>
  (await world.nodes[0]?.store.instances())?.find((row) => row.nodeId === nodeId && !row.dead)?.keysAway;

describe("a lane owner with an unreachable signer", () => {
  afterEach(() => world.close());

  // protects [Signers] src/domain/cluster/key-health.ts, src/application/cluster/keys-away.ts, src/domain/cluster/placement.ts
  it("hands the lane to a node with a working signer after repeated failures", async () => {
    const { first, second, signer } = await pair();
    const away = takeAway(first, signer);
    const there = takeAway(second, signer);
    there.isAway = false;
    await world.settle(first.node.api.create(transfer({ signer })));
    await world.until(() => away.failed > 0);
    const beganMs = world.clock.monotonicMs();
    await world.clock.advance(LEASE_MS - 1_000);
    expect(away.failed).toBeGreaterThanOrEqual(3);
    expect(world.ownerOf(signer), "not before a lease is over").toBe("node-1");
    expect(await keysAwayOf("node-1")).toEqual([]);
    expect(there.signed, "no node signs to find out whether it could").toBe(0);
    await world.until(() => world.ownerOf(signer) === "node-2", 30_000);
    expect(world.clock.monotonicMs() - beganMs).toBeLessThan(3 * LEASE_MS);
    expect(await keysAwayOf("node-1")).toEqual([signer]);
    await world.allSettled(1, 60_000);
    expect(world.rows().map(({ state }) => state)).toEqual(["CONFIRMED"]);
    checkInvariants(world);
  });

  it("keeps its other lanes", async () => {
    const { first, signer } = await pair();
    takeAway(first, signer);
    const others = SIGNERS.filter((each) => each !== signer && world.ownerOf(each) === "node-1");
    const before = others.map((each) => world.tokenOf(each));
    await world.settle(first.node.api.create(transfer({ signer })));
    await world.until(() => world.ownerOf(signer) === "node-2", 60_000);
    expect(others.map((each) => world.tokenOf(each))).toEqual(before);
  });

  // protects [Signers] src/domain/cluster/key-health.ts, src/application/cluster/keys-away.ts, src/domain/cluster/placement.ts
  it("keeps the lane if every node reports the key as unreachable", async () => {
    const { first, second, signer } = await pair();
    takeAway(first, signer);
    const state = takeAway(second, signer);
    await world.settle(first.node.api.create(transfer({ signer })));
    await world.until(() => world.ownerOf(signer) === "node-2", 60_000);
    await world.until(() => state.failed >= 3, 60_000);
    await world.clock.advance(2 * LEASE_MS);
    expect(await keysAwayOf("node-1")).toEqual([signer]);
    expect(await keysAwayOf("node-2")).toEqual([signer]);
    expect(await ownersOver(signer, 3 * LEASE_MS)).toEqual(["node-2"]);
    state.isAway = false;
    await world.allSettled(1, 60_000);
    await world.clock.advance(2_000);
    expect(await keysAwayOf("node-2"), "a signature removes the mark").toEqual([]);
  });

  // protects [Signers] src/domain/cluster/key-health.ts, src/application/cluster/keys-away.ts, src/domain/cluster/placement.ts
  it("moves the lane at most once in ten leases if the key fails on every node", async () => {
    const { first, second, signer } = await pair();
    const states = [takeAway(first, signer), takeAway(second, signer)];
    await world.settle(first.node.api.create(transfer({ signer })));
    await world.clock.advance(3 * LEASE_MS);
    expect((await ownersOver(signer, 60 * LEASE_MS)).length).toBeLessThanOrEqual(7);
    for (const state of states) state.isAway = false;
    await world.allSettled(1, 60_000);
    checkInvariants(world);
  });

  it("gets the lane back after its report of the unreachable key expires", async () => {
    const { first, signer } = await pair();
    const state = takeAway(first, signer);
    await world.settle(first.node.api.create(transfer({ signer })));
    await world.until(() => world.ownerOf(signer) === "node-2", 60_000);
    await world.allSettled(1, 60_000);
    state.isAway = false;
    expect(await ownersOver(signer, 8 * LEASE_MS)).toEqual(["node-2"]);
    await world.until(() => world.ownerOf(signer) === "node-1", 10 * LEASE_MS);
    await world.settle(first.node.api.create(transfer({ signer })));
    await world.allSettled(2, 60_000);
    expect(state.signed).toBeGreaterThan(0);
    expect(world.ownerOf(signer)).toBe("node-1");
  });
});

describe("the keys that a node reports as unreachable", () => {
  const key: Address = `0x${"11".repeat(20)}`;

  /**
   * Requests a signature once per lease. The signer gives the listed answers in order. Returns the keys that the node
   * then reports as unreachable.
   */
  async function asked(...answers: readonly (Error | readonly SignedTransaction[])[]): Promise<readonly Address[]> {
    const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
    const left = [...answers];
    const sign = async () => {
      const answer = left.shift() ?? [];
      if (answer instanceof Error) throw answer;
      return answer;
    };
    const signMessages = async () => [];
    const custody = () => "local" as const;
    const signer = { sign, signMessages, addresses: () => [key], custody, close: async () => undefined };
    const keys = new KeysAway({ signer, clock, leaseDurationMs: LEASE_MS });
    for (const _ of answers) {
      await keys.signer.sign(key, [], 1).catch(() => undefined);
      clock.nowMs += LEASE_MS;
    }
    return keys.list();
  }

  const gone = new SignerAway("connection refused");
  const signed = [{ rawTransaction: "0x", txHash: "0x" } as const];

  it("are the keys whose signing failed three times in a row", async () => {
    expect(await asked(gone, gone, gone)).toEqual([key]);
    expect(await asked(new Error("broken"), gone, gone)).toEqual([key]);
    expect(await asked(gone, gone)).toEqual([]);
  });

  it("exclude keys whose signer refused a request", async () => {
    const refused = new SigningRefused(0, "above its limit");
    expect(await asked(refused, refused, refused, refused)).toEqual([]);
    expect(await asked(gone, gone, refused)).toEqual([]);
    expect(await asked(gone, gone, new SignerAway("cut off", { signed }), gone, gone)).toEqual([]);
    expect(await asked(gone, gone, gone, signed)).toEqual([]);
  });
});
