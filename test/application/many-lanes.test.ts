import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../src/domain/lane.ts";
import { transfer, World, type WorldNode } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

const LANES = 1_000;
const signersOf = (count: number): readonly Address[] =>
  Array.from({ length: count }, (_, n) => `0x${(n + 1).toString(16).padStart(40, "c")}` as Address);

interface Calls {
  /** What was asked, by name. */
  readonly byName: Map<string, number>;
  /** What is asked in one instant shares a request; so this many were needed. */
  readonly instants: Set<number>;
}

/** Every call of a port from here on. */
function count(port: object): Calls {
  const calls: Calls = { byName: new Map(), instants: new Set() };
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(port))) {
    const member: unknown = name === "constructor" ? null : Reflect.get(port, name);
    if (typeof member !== "function") continue;
    const counted = (...parameters: unknown[]): unknown => {
      calls.byName.set(name, (calls.byName.get(name) ?? 0) + 1);
      calls.instants.add(world.clock.monotonicMs());
      return member.apply(port, parameters);
    };
    Object.defineProperty(port, name, { value: counted, configurable: true });
  }
  return calls;
}

/**
 * Every call takes a millisecond there and one back, so that what waits for an answer is in an instant of its own. Before
 * that it takes longer, so that lanes are taken over seconds and not all at once.
 */
async function start(lanes: number): Promise<WorldNode> {
  const settings = { pollIntervalMs: 1_000 };
  world = new World({ signers: signersOf(lanes), settings });
  let wayMs = 25;
  const entry = await world.startNode({ latency: () => world.clock.sleep(wayMs) });
  wayMs = 1;
  await world.clock.advance(5_000);
  return entry;
}

/** How often anything that a node does looked at the clock in one virtual minute: a measure of how much it did. */
async function looksAtTheClock(lanes: number): Promise<number> {
  await start(lanes);
  const { clock } = world;
  const { monotonicMs } = clock;
  let looks = 0;
  Object.assign(clock, {
    monotonicMs: () => {
      looks++;
      return monotonicMs();
    },
  });
  await clock.advance(60_000);
  await world.close();
  return looks;
}

describe("a thousand lanes with nothing to do", () => {
  it("are compared with the chain together: no more than three requests a second", async () => {
    const { rpc, events } = await start(LANES);
    const calls = count(rpc);
    const before = events.length;
    await world.clock.advance(60_000);
    const reconciled = events.slice(before).filter(({ type }) => type === "lane.reconciled");
    // Each once in five minutes.
    expect(reconciled.length).toBeGreaterThan(LANES / 6);
    expect(calls.instants.size / 60).toBeLessThanOrEqual(3);
    // What is the same for all of them is asked once for all of them.
    expect(calls.byName.get("identity")).toBeLessThan(LANES / 20);
  });

  it("cost no more work than ten, as far as nothing is due", async () => {
    const [few, many] = [await looksAtTheClock(10), await looksAtTheClock(LANES)];
    expect(many).toBeLessThanOrEqual(2 * few);
  });
});

describe("a thousand lanes with one create each, one a millisecond", () => {
  it("share reads and commits: no more than one of each for ten", async () => {
    const { node, store, events } = await start(LANES);
    const calls = count(store);
    const answers: Promise<unknown>[] = [];
    for (const signer of signersOf(LANES)) {
      const payload = { to: signer, value: "1", gas: 60_000 };
      answers.push(node.api.create(transfer({ signer, payload })));
      await world.clock.advance(1);
    }
    await world.settle(Promise.all(answers));
    await world.allSettled(LANES);
    expect(events.filter(({ type }) => type === "create.answered").length).toBe(LANES);
    expect(calls.byName.get("findByRequestIds")).toBeLessThanOrEqual(LANES / 9);
    expect(calls.byName.get("commit")).toBeLessThanOrEqual(LANES / 9);
  });
});
