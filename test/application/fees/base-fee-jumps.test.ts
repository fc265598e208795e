import { afterEach, describe, expect, it } from "vitest";
import { REPRICING_STRATEGIES } from "../../../src/domain/fees/repricing.ts";
import { type FeeMarket, feeCap } from "../../../src/domain/transaction/fees.ts";
import { GETH_POOL } from "../../doubles/simulated-chain/pool.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { BLOCK_MS, SIGNERS, TO, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

const GWEI = 1_000_000_000n;
/** The fee ceiling that docs/configuration.md gives for chain 31337. */
const MOST = 1_000n * GWEI;
const INTERVAL_MS = 5_000;

const TYPES = ["eip1559", "legacy"] as const;
const FROM = [0n, 1n, 7n, GWEI];
const REACHABLE = [GWEI, 30n * GWEI, 300n * GWEI];
const JUMPS = FROM.flatMap((from) => REACHABLE.filter((to) => to > from).map((to) => [from, to] as const));

/**
 * Mines a hundred blocks at one base fee and sends a transaction at the price derived from them, which stays unmined.
 * Then the base fee jumps.
 */
async function jumped(
  { from, to, type }: { readonly from: bigint; readonly to: bigint; readonly type: (typeof TYPES)[number] },
  options: WorldOptions = {},
): Promise<{ readonly node: WorldNode; readonly txId: string }> {
  world = new World({
    ...options,
    settings: { repricing: null, resubmitIntervalMs: INTERVAL_MS, ...options.settings },
    chain: { pool: GETH_POOL, baseFee: from, ...options.chain },
  });
  ops = new OperatedWorld(world);
  world.chain.mine(100);
  const node = await world.startNode();
  world.holdBlocks();
  const txId = await ops.sent(node, { payload: { to: TO, value: "1", type } });
  if (to === from) return { node, txId };
  world.chain.setBaseFee(to);
  world.releaseBlocks();
  await world.clock.advance(4 * BLOCK_MS);
  return { node, txId };
}

/** A transaction that waits because no block is mined, not because the base fee jumped. */
const waiting = () => jumped({ from: 7n, to: 7n, type: "eip1559" });

const caps = (txId: string) => ops.row(txId).attempts.map(({ fees }) => feeCap(fees));

function alerts({ events }: WorldNode): readonly string[] {
  return events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
}

/** Makes an endpoint report these fees, whatever its blocks contain. */
function answerMarket(node: WorldNode, market: Partial<FeeMarket>): void {
  node.rpc.feeMarket = async () => ({ baseFees: [], priorityFees: [], gasPrice: 0n, ...market });
}

const DEAR = { baseFees: Array.from({ length: 101 }, () => 300n * GWEI), priorityFees: [GWEI], gasPrice: 301n * GWEI };

describe("after a jump of the base fee", () => {
  const cases = JUMPS.flatMap(([from, to]) => TYPES.map((type) => ({ from, to, type })));

  // protects [Sent again, priced again, stuck] src/domain/fees/action-price.ts, src/application/detours/reprice.ts
  it.each(cases)("from $from to $to, a reprice offers a fee that blocks now accept ($type)", async (jump) => {
    const { node, txId } = await jumped(jump);
    if (ops.row(txId).receipt === null) await ops.act(node, "reprice", { txId });
    await world.clock.advance(2 * BLOCK_MS);
    expect(ops.row(txId).receipt).not.toBeNull();
    expect(caps(txId).length).toBeLessThanOrEqual(2);
    await ops.settled(txId);
    checkInvariants(world);
  });

  const OTHERS = [
    ["cancel", {}, "FAILED_FINAL/CANCELLED"],
    ["replace", { payload: { to: SIGNERS[1], value: "2" } }, "CONFIRMED/REPLACED"],
    ["reprice", { maxPriorityFeePerGas: String(2n * GWEI) }, "CONFIRMED"],
  ] as const;

  it.each(OTHERS.flatMap(([action, request, outcome]) => TYPES.map((type) => ({ action, request, outcome, type }))))(
    // protects [Sent again, priced again, stuck] src/domain/fees/action-price.ts, src/application/detours/reprice.ts
    "an action without a fee cap offers a fee that blocks now accept: $action of $type ($outcome)",
    async ({ action, request, outcome, type }) => {
      const { node, txId } = await jumped({ from: 7n, to: 30n * GWEI, type });
      await ops.act(node, action, { txId, request });
      await world.clock.advance(2 * BLOCK_MS);
      expect(ops.row(txId).receipt).not.toBeNull();
      await ops.settled(txId);
      expect(ops.outcome(txId)).toBe(outcome);
      checkInvariants(world);
    },
  );

  it.each(TYPES)("beyond the fee ceiling, a reprice offers the ceiling itself ($0)", async (type) => {
    const { node, txId } = await jumped({ from: 7n, to: 3_000n * GWEI, type });
    await ops.act(node, "reprice", { txId });
    expect(caps(txId).at(-1)).toBe(MOST);
    const { causes, help } = await world.settle(node.node.api.explain(txId));
    expect(causes[0]).toMatchObject({
      code: "FEE_CEILING_REACHED",
      text: "its price may not rise above 1000 gwei (FENCEPOST_MAX_FEE_GWEI), and it offers 1000 gwei for gas that costs 3000 gwei",
    });
    expect(help.map(({ code }) => code)).not.toContain("REPRICE");
    expect(await world.refusal(ops.act(node, "reprice", { txId }))).toMatchObject({ code: "SUBMISSION_REJECTED" });
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/ceilings.ts, src/application/detours/reprice.ts
  it("automatic repricing ends at five times the first fee", async () => {
    const { node, txId } = await jumped(
      { from: 7n, to: 30n * GWEI, type: "eip1559" },
      { settings: { repricing: REPRICING_STRATEGIES.on } },
    );
    await world.until(() => alerts(node).includes("FEE_CEILING_REACHED"));
    await world.clock.advance(120 * BLOCK_MS);
    const offered = caps(txId).at(-1) as bigint;
    const { causes, help, actions } = await world.settle(node.node.api.explain(txId));
    expect(causes.map(({ code }) => code)).toContain("FEE_CEILING_REACHED");
    expect(causes[0]?.text).toMatch(
      /may not rise by itself above 5\.\d+ gwei \(5 times its first price; FENCEPOST_MAX_FEE_GWEI sets another\), and it offers 5\.\d+ gwei for gas that costs 30 gwei/,
    );
    expect(offered).toBeLessThan(6n * GWEI);
    expect(help[0]?.code).toBe("REPRICE");
    expect(actions[0]?.action).toBe("reprice");
    await ops.act(node, "reprice", { txId, request: actions[0]?.body ?? {} });
    await world.clock.advance(2 * BLOCK_MS);
    expect(ops.row(txId).receipt).not.toBeNull();
  });
});

describe("a fee that only one endpoint reports", () => {
  it.each(["reprice", "cancel"] as const)(
    // protects [Sent again, priced again, stuck] src/domain/fees/action-price.ts, src/application/detours/reprice.ts
    "is not paid by a %s",
    async (action) => {
      const { node, txId } = await waiting();
      const [first] = caps(txId);
      answerMarket(node, DEAR);
      await world.clock.advance(BLOCK_MS);
      const refused = await world.refusal(ops.act(node, action, { txId }));
      expect(refused).toMatchObject({
        code: "UNAVAILABLE",
        extras: { txId, baseFeePerGas: String(300n * GWEI), retryAfterSeconds: 1 },
      });
      expect(refused.message).toBe(
        "an endpoint says that gas costs 300000000000 wei, and the newest block that was followed had 7: nothing was changed. Repeat this once the next block is there, or give the fees (maxFeePerGas 601000000000 and maxPriorityFeePerGas 1100000000, which exceeds the ceiling of 5000000070 wei per gas (5 times its first price; FENCEPOST_MAX_FEE_GWEI sets another))",
      );
      expect(caps(txId)).toEqual([first]);
      world.releaseBlocks();
      const fees = { maxFeePerGas: String(601n * GWEI), maxPriorityFeePerGas: String(2n * GWEI) };
      await ops.act(node, action, { txId, request: fees });
      await ops.settled(txId);
      checkInvariants(world);
    },
  );

  // protects [Sent again, priced again, stuck] src/domain/fees/action-price.ts, src/application/detours/reprice.ts
  it("is paid once a block has a high base fee too", async () => {
    const { node, txId } = await waiting();
    world.chain.setBaseFee(200n * GWEI);
    world.releaseBlocks();
    answerMarket(node, { ...DEAR, priorityFees: Array.from({ length: 100 }, () => MOST) });
    await world.clock.advance(2 * BLOCK_MS);
    await ops.act(node, "reprice", { txId });
    const { fees } = ops.row(txId).attempts[1] ?? {};
    expect(fees).toEqual({ type: "eip1559", maxFeePerGas: 605_000_000_070n, maxPriorityFeePerGas: 5_000_000_070n });
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/action-price.ts, src/application/detours/reprice.ts
  it("is refused permanently on a chain without base fees", async () => {
    world = new World({ chain: { baseFee: null }, settings: { repricing: null } });
    ops = new OperatedWorld(world);
    const node = await world.startNode();
    world.holdBlocks();
    const txId = await ops.sent(node, { payload: { to: TO, value: "1", gasPrice: String(GWEI) } });
    answerMarket(node, { gasPrice: 6n * GWEI });
    await world.clock.advance(BLOCK_MS);
    expect(await world.refusal(ops.act(node, "reprice", { txId }))).toMatchObject({
      code: "CONFLICT",
      message: expect.stringMatching(
        /would need gasPrice 6000000000, which exceeds .* of 5000000000 wei .*: set the fees in the request$/,
      ),
    });
    await ops.act(node, "reprice", { txId, request: { gasPrice: String(6n * GWEI) } });
    world.releaseBlocks();
    await ops.settled(txId);
    expect(caps(txId)).toEqual([GWEI, 6n * GWEI]);
  });

  it("does not block the cancel of an expired transaction", async () => {
    const { node, txId } = await waiting();
    answerMarket(node, DEAR);
    expect(txId).toBeDefined();
    const payload = { to: TO, value: "1", gas: "21000", ...TINY };
    const validUntil = new Date(world.clock.now().getTime() + 10_000).toISOString();
    const late = await ops.sent(node, { payload, validUntil, signer: SIGNERS[1] });
    await world.until(() => ops.kinds(late).includes("cancel"));
    expect(caps(late).at(-1)).toBe(5n * GWEI);
  });
});

const TINY = { maxFeePerGas: String(GWEI), maxPriorityFeePerGas: String(GWEI) };
