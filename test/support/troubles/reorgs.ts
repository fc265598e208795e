/** Faults with competing attempts of one transaction, and with blocks that are replaced. */
import { keccak256 } from "viem";
import { isTaken } from "../../../src/domain/chain/answers.ts";
import { deferred } from "../deferred.ts";
import { badGateway, holdUntil, type Rule } from "../rpc-proxy.ts";
import { range } from "../transfers.ts";
import { GWEI, type Policy, type Scene, SEND } from "./scene.ts";
import { setGate } from "./tally.ts";
import type { Trouble } from "./trouble.ts";

const CHEAP = { fees: { maxFeePerGas: 3n * GWEI, maxPriorityFeePerGas: GWEI } };

/**
 * Creates payload 0 with two attempts, neither of which is mined. From here on, everything that the node sends is lost
 * until the returned rule is lifted.
 */
async function bumped(scene: Scene): Promise<Rule> {
  await scene.pay(0, CHEAP);
  await scene.untilTaken(0);
  await scene.chain.holdBaseFee(5n * GWEI);
  await scene.chain.mine(2);
  await scene.untilAttempts(0, 2);
  const dearer = keccak256(await scene.bytesOf(0, 2));
  const isInPool = () => scene.answers.some(({ txHash, answer }) => txHash === dearer && isTaken(answer));
  await scene.until(isInPool, "the dearer one is in the pool");
  return scene.onSends(badGateway);
}

/** Lowers the base fee again and leaves only this attempt in the mempool. */
async function poolHolds(scene: Scene, attempt: number): Promise<void> {
  await scene.chain.dropAll();
  await scene.chain.holdBaseFee(GWEI);
  await scene.chain.node.rpc("hardhat_setNextBlockBaseFeePerGas", [`0x${GWEI.toString(16)}`]);
  await scene.chain.inject(await scene.bytesOf(0, attempt));
}

async function untilMined(scene: Scene, attempt: number): Promise<void> {
  const hash = keccak256(await scene.bytesOf(0, attempt));
  await scene.until(async () => (await scene.view(0)).receipt?.txHash === hash, `attempt ${attempt} is mined`);
}

export const ATTEMPTS: readonly Trouble[] = [
  {
    name: "the older attempt is mined after a reprice",
    setting: { still: true },
    async strike(scene) {
      const cut = await bumped(scene);
      await poolHolds(scene, 1);
      await scene.chain.mine();
      await untilMined(scene, 1);
      cut.lift();
    },
  },
  {
    name: "an attempt is mined while the transaction is being repriced",
    setting: { still: true },
    async strike(scene) {
      await scene.pay(0, CHEAP);
      await scene.pay(1, CHEAP);
      await scene.untilTaken(0, 1);
      const first = await scene.bytesOf(0, 1);
      const mined = deferred<void>();
      const held = scene.proxy.rule(
        { methods: [SEND], when: ({ params }) => params[0] !== first },
        holdUntil(mined.promise),
      );
      await scene.chain.holdBaseFee(5n * GWEI);
      await scene.chain.mine(2);
      await scene.untilStruck(held);
      await scene.chain.holdBaseFee(GWEI);
      await scene.chain.mine(2);
      mined.resolve();
    },
  },
];

/**
 * Waits until the transactions are mined. If the reorg is deeper than 2 blocks, waits until they are final, because
 * three blocks make them final.
 */
async function untilAsDeep(scene: Scene, depth: number, ...numbers: readonly number[]): Promise<void> {
  await (depth > 2 ? scene.untilAre("CONFIRMED", ...numbers) : scene.untilMined(...numbers));
}

const DEPTHS = range(10).map((index) => index + 1);

/**
 * None of these faults leaves a nonce gap, so the hole policy makes no difference. Each depth is tested with only one
 * of the two policies.
 */
const policyOf = (depth: number): Policy => (depth % 2 === 0 ? "move" : "heal");

const dropping = (depth: number): Trouble => ({
  name: `a reorg of depth ${depth} drops mined transactions`,
  setting: { still: true },
  policies: [policyOf(depth)],
  async strike(scene) {
    await scene.payAll(0, 1);
    await scene.untilTaken(0, 1);
    await scene.chain.mine(depth);
    await untilAsDeep(scene, depth, 0, 1);
    await scene.chain.reorg(depth);
  },
});

const moving = (depth: number): Trouble => ({
  name: `a reorg of depth ${depth} moves mined transactions to another block`,
  setting: { still: true },
  policies: [policyOf(depth + 1)],
  async strike(scene) {
    await scene.payAll(0, 1);
    await scene.untilTaken(0, 1);
    const raws = await Promise.all([scene.bytesOf(0), scene.bytesOf(1)]);
    await scene.chain.mine(depth);
    await untilAsDeep(scene, depth, 0, 1);
    // On the new branch, both transactions are mined one block later, or in separate blocks.
    await scene.chain.reorg(depth, { branch: depth === 1 ? [[], raws] : [[], raws.slice(0, 1), raws.slice(1)] });
  },
});

const exchanging = (depth: number): Trouble => ({
  name: `a reorg of depth ${depth} mines another attempt`,
  setting: { still: true },
  policies: [policyOf(depth)],
  async strike(scene) {
    const cut = await bumped(scene);
    const [first, second] = depth % 2 === 0 ? [1, 2] : [2, 1];
    await poolHolds(scene, first);
    await scene.chain.mine(depth);
    await untilMined(scene, first);
    await untilAsDeep(scene, depth, 0);
    await scene.chain.reorg(depth, { branch: [[await scene.bytesOf(0, second)]] });
    await untilMined(scene, second);
    cut.lift();
  },
});

const reverting = (depth: number): Trouble => ({
  name: `a reverted receipt is removed by a reorg of depth ${depth}`,
  setting: { still: true },
  async strike(scene) {
    const { node } = scene.chain;
    await scene.payAll(0, 1);
    await scene.untilTaken(0, 1);
    await setGate(node, "shut");
    await scene.chain.mine(depth);
    await scene.until(async () => (await scene.view(0)).receipt?.status === "reverted", "it has reverted");
    await (depth > 2 ? scene.untilAre("FAILED_FINAL", 0, 1) : scene.untilMined(0, 1));
    await scene.chain.reorg(depth, { before: () => setGate(node, "open") });
  },
});

export const REORGS: readonly Trouble[] = [
  ...DEPTHS.map(dropping),
  ...DEPTHS.map(moving),
  ...DEPTHS.map(exchanging),
  ...[1, 2, 3, 6].map(reverting),
];
