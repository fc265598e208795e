/** An endpoint that reports blocks or tags that no other endpoint has. Its report alone makes nothing final. */
import { afterEach, describe, expect, it } from "vitest";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNER, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

interface TwoEndpoints extends WorldNode {
  readonly elsewhere: Faults;
}

async function open(
  finality: "confirmations" | "safe" | "finalized",
  options: WorldOptions = { chain: { tagDepths: { safe: 5, finalized: 5 } } },
  before: (endpoints: Pick<TwoEndpoints, "faults" | "elsewhere">) => void = () => undefined,
): Promise<TwoEndpoints> {
  world = new World({ ...options, settings: { finality, confirmations: 5, ...options.settings } });
  world.chain.mine(100);
  ops = new OperatedWorld(world);
  const elsewhere = new Faults();
  const entry = { ...world.addNode({ elsewhere: { chain: world.chain, faults: elsewhere } }), elsewhere };
  before(entry);
  await world.settle(entry.node.start());
  return entry;
}

/** Mines a transaction in the newest block, after which no further genuine block follows. */
async function minedAtTheTip(entry: TwoEndpoints): Promise<string> {
  const txId = await ops.sent(entry);
  world.holdBlocks();
  world.chain.mine();
  await world.until(() => ops.row(txId).subState === "MINED");
  return txId;
}

describe.each(["confirmations", "safe", "finalized"] as const)(
  "blocks invented by one of two endpoints (finality by %s)",
  (finality) => {
    // protects [False receipts] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
    it.each(["first", "second"] as const)("make no transaction final (invented by the %s endpoint)", async (which) => {
      const entry = await open(finality);
      const txId = await minedAtTheTip(entry);
      entry[which === "first" ? "faults" : "elsewhere"].inventBlocks(80);
      await world.clock.advance(30_000);
      expect(world.database.state.completions).toEqual([]);
      world.releaseBlocks();
      const depth = () => world.chain.head.number - (ops.row(txId).receipt?.blockNumber ?? 0);
      await world.until(() => ops.row(txId).state === "CONFIRMED");
      expect(depth()).toBeGreaterThanOrEqual(5);
      checkInvariants(world);
    });
  },
);

it.each(["confirmations", "safe"] as const)(
  // protects [False receipts] src/application/stages/6-finality/finality.ts
  "blocks invented by one endpoint, with finality by %s, do not end the check for reorgs",
  async (finality) => {
    const entry = await open(finality);
    const txId = await ops.create(entry);
    await ops.settled(txId);
    world.holdBlocks();
    entry.faults.inventBlocks(80);
    await world.clock.advance(10_000);
    entry.faults.inventBlocks(0);
    const depth = world.chain.head.number - (ops.row(txId).receipt?.blockNumber ?? 0) + 1;
    world.chain.reorg(depth, { drop: "all" });
    await world.until(() => world.database.state.completions.some(({ state }) => state === "REORGED"));
  },
);

describe("blocks invented by one of two endpoints", () => {
  // protects [False receipts] src/application/detours/holes.ts
  it("do not close a nonce gap that a reorg may reopen", async () => {
    const entry = await open("confirmations");
    await ops.settled(await ops.create(entry));
    world.holdBlocks();
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }));
    await ops.sent(entry);
    await world.settle(entry.node.api.releaseNonce(reservation.reservationId));
    world.chain.mineForeign(SIGNER);
    const isAlerted = () =>
      entry.events.some((event) => event.type === "alert" && event.code === "HOLE_USED_ELSEWHERE");
    await world.until(isAlerted);
    entry.faults.inventBlocks(80);
    await world.clock.advance(10_000);
    expect(world.database.state.holes().length).toBe(1);
    entry.faults.inventBlocks(0);
    world.chain.mine(70);
    await world.until(() => world.database.state.holes().length === 0);
  });
});

describe.each(["safe", "finalized"] as const)("finality by the tag %s", (finality) => {
  // protects [False receipts] src/adapters/evm/reads/agree.ts
  it.each(["first", "second"] as const)(
    "is decided by the other endpoint if the %s endpoint lacks the tag",
    async (which) => {
      const entry = await open(finality, undefined, (endpoints) => {
        endpoints[which === "first" ? "faults" : "elsewhere"].lieAboutTags(() => null);
      });
      const txId = await ops.create(entry);
      await ops.settled(txId);
      const depth = world.chain.head.number - (ops.row(txId).receipt?.blockNumber ?? 0);
      expect(depth).toBeGreaterThanOrEqual(5);
      checkInvariants(world);
    },
  );
});
