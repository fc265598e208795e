/** Tests of nodes that notify each other. Without notifications, the results are the same but arrive a little later. */
import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { CHAIN_ID, SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

/** Advances virtual time until `fact` returns true. Returns the elapsed time in ms. */
async function timeUntil(fact: () => boolean): Promise<number> {
  const startedMs = world.clock.monotonicMs();
  while (!fact()) await world.clock.advance(1);
  return world.clock.monotonicMs() - startedMs;
}

const holds = ({ node }: WorldNode, count: number) => node.gauges().lanesHeld === count;

describe.each([
  { hints: true, feedMs: 20, intakeMs: 40, lateMs: 110, looks: 1 },
  { hints: false, feedMs: 260, intakeMs: 150, lateMs: 310, looks: 4 },
])("across two nodes (NOTIFY hints: $hints)", ({ hints, feedMs, intakeMs, lateMs, looks }) => {
  /** Starts two nodes: the first owns the lane, the second receives the requests. */
  async function two(): Promise<readonly [WorldNode, WorldNode]> {
    world = new World({ hints, signers: [SIGNER] });
    const nodes = [await world.startNode(), await world.startNode()] as const;
    await world.until(() => nodes.filter((entry) => holds(entry, 1)).length === 1);
    await world.clock.advance(5_000);
    return holds(nodes[0], 1) ? nodes : [nodes[1], nodes[0]];
  }

  it("a caller that waits at another node receives a completion in time", async () => {
    const [owner, other] = await two();
    await world.settle(owner.node.api.create(transfer()));
    let woken = false;
    void other.node.api.completions({ after: 0, waitMs: 30_000 }).then(() => {
      woken = true;
    });
    await world.until(() => world.database.state.completions.length === 1);
    expect(await timeUntil(() => woken)).toBeLessThanOrEqual(feedMs);
  });

  it("an intent inserted at another node is processed in time", async () => {
    const [, other] = await two();
    const ports = { codec: createCodec(), entropy: createSeededEntropy(7), chainIds: [CHAIN_ID] };
    world.database.insertIntake(normalise(ports, transfer()));
    other.node.intakeWritten();
    expect(await timeUntil(() => world.rows().length === 1)).toBeLessThanOrEqual(intakeMs);
  });

  // protects [Many lanes] src/application/detours/intake.ts, src/application/loops/node.ts
  it("an intake row committed long after its hint is processed in time", async () => {
    const [, other] = await two();
    other.node.intakeWritten();
    await world.clock.advance(8_000);
    const ports = { codec: createCodec(), entropy: createSeededEntropy(7), chainIds: [CHAIN_ID] };
    world.database.insertIntake(normalise(ports, transfer()));
    expect(await timeUntil(() => world.rows().length === 1)).toBeLessThanOrEqual(lateMs);
  });

  // protects [Many lanes] src/application/detours/intake.ts
  it(`the intake table is polled at most ${looks} times a second while it is empty`, async () => {
    const [owner] = await two();
    await world.clock.advance(11_000);
    let asked = 0;
    owner.store.whatWaits = async () => {
      asked++;
      return { intents: false, requests: false };
    };
    await world.clock.advance(10_000);
    expect(asked).toBeLessThanOrEqual(10 * looks);
    expect(asked).toBeGreaterThanOrEqual(9);
  });

  it("lanes of a node that shuts down are claimed at once", async () => {
    const [owner, other] = await two();
    const closing = owner.node.close();
    await world.until(() => holds(other, 1), 1_000);
    await world.settle(closing);
  });

  it("the lanes of a dead node are claimed by other nodes", async () => {
    world = new World({ hints });
    const nodes = [await world.startNode(), await world.startNode(), await world.startNode()];
    await world.clock.advance(5_000);
    const [dying, ...left] = nodes as [WorldNode, ...WorldNode[]];
    world.crash(dying);
    await world.until(() => left.reduce((sum, { node }) => sum + node.gauges().lanesHeld, 0) === 3, 11_000);
  });

  it("no completion is missed by a node that lost its connection for hints", async () => {
    const [owner, other] = await two();
    owner.wakeUps?.disconnect();
    await world.settle(owner.node.api.create(transfer()));
    const page = other.node.api.completions({ after: 0, waitMs: 30_000 });
    expect((await world.settle(page)).items).toHaveLength(1);
  });
});
