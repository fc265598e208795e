import { afterEach, describe, expect, it } from "vitest";
import { checkInvariants } from "../../support/invariants.ts";
import { isBalanced, keepSending, startNodes, TWENTY } from "../../support/spread-lanes.ts";
import { World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

function tokens(): readonly number[] {
  return [...world.database.state.lanes.values()].map(({ token }) => token);
}

/** Largest number of times that any one lane changed its owner since `before`. */
function mostMoves(before: readonly number[]): number {
  return Math.max(...tokens().map((token, lane) => token - (before[lane] as number)));
}

/** Starts a node that joins and does not claim any lane by itself. */
async function joinSlowly(): Promise<WorldNode> {
  const joining = world.addNode();
  joining.store.claimLanes = async () => [];
  await world.settle(joining.node.start());
  return joining;
}

describe("hand-over of lanes", () => {
  it("moves no lane twice if the new node claims the lanes late", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 2);
    const before = tokens();
    const joining = await joinSlowly();
    const waits: number[] = [];
    const steady = keepSending(world, nodes, waits);
    await world.until(() => isBalanced(world, [...nodes, joining]), 30_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(mostMoves(before)).toBe(1);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    await world.allSettled(waits.length, 600_000);
    checkInvariants(world);
  });

  it("makes no create fail if the new node crashes before it claims the lanes", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 1);
    const before = tokens();
    world.crash(await joinSlowly());
    const waits: number[] = [];
    const steady = keepSending(world, nodes, waits);
    await world.clock.advance(12_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(Math.max(...waits)).toBeGreaterThan(250);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_250);
    expect(mostMoves(before)).toBe(1);
    await world.allSettled(waits.length, 600_000);
    checkInvariants(world);
  });
});
