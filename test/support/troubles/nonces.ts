/**
 * Faults with nonces: another program uses them, no transaction holds them, or an endpoint counts them on a wrong
 * chain.
 */
import { keccak256 } from "viem";
import { startEmbeddedChain } from "../../../src/main/dev/embedded/start-chain.ts";
import { SIGNER } from "../integration.ts";
import { badGateway, rewrite } from "../rpc-proxy.ts";
import { COUNT, type Scene } from "./scene.ts";
import type { Trouble } from "./trouble.ts";

const TAKEN = "FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY";
/** A mnemonic that gives another genesis block with the same chain id. */
const OTHER_MNEMONIC = "legal winner thank year wave sausage worth useful legal winner thank yellow";

async function usurp(scene: Scene, nonce: number): Promise<void> {
  await scene.chain.dropAll();
  await scene.chain.inject(await scene.foreign(nonce));
  await scene.chain.mine();
}

export const FOREIGN: readonly Trouble[] = [
  {
    name: "a foreign transaction uses a nonce before ours is sent",
    setting: { still: true },
    async strike(scene) {
      const down = scene.onSends(badGateway);
      await scene.payAll(0, 1, 2);
      await scene.untilStruck(down, 2);
      await usurp(scene, 0);
      down.lift();
    },
    ends: { 0: TAKEN },
  },
  {
    name: "a foreign transaction replaces ours in the pool",
    setting: { still: true },
    async strike(scene) {
      await scene.payAll(0, 1, 2);
      await scene.untilTaken(0, 1, 2);
      const foreign = await scene.foreign(1);
      await scene.chain.inject(foreign);
      await scene.until(async () => (await scene.chain.pool()).includes(keccak256(foreign)), "it has taken the place");
    },
    ends: { 1: TAKEN },
  },
  {
    name: "a foreign transaction at our nonce is removed by a reorg",
    setting: { still: true, chain: { confirmations: 4 } },
    async strike(scene) {
      const down = scene.onSends(badGateway);
      await scene.payAll(0, 1);
      await scene.untilStruck(down, 2);
      await usurp(scene, 0);
      await scene.chain.mine(2);
      down.lift();
      await scene.untilMined(0);
      await scene.chain.reorg(3);
    },
  },
];

export const HOLES: readonly Trouble[] = [
  {
    name: "a reserved nonce is left to expire",
    async strike(scene) {
      const kept = scene.fencepost.withNonce({ signer: SIGNER, ttl: 1 }, () =>
        Promise.reject(new Error("signed, perhaps")),
      );
      await kept.catch(() => undefined);
      await scene.payAll(0, 1);
    },
  },
  {
    name: "a count is too high for as long as it is looked at, and we send above it",
    setting: { still: true },
    async strike(scene) {
      await scene.pay(0);
      await scene.untilTaken(0);
      await scene.chain.mine(4);
      await scene.untilAre("CONFIRMED", 0);
      const lie = scene.proxy.rule(
        { methods: [COUNT] },
        rewrite((count) => `0x${(Number(count) + 1).toString(16)}`),
      );
      await scene.until(async () => (await scene.nextNonce()) === 2, "the lie was believed");
      await scene.pay(1);
      lie.lift();
      await scene.pay(2);
    },
    stuck: {
      payload: 1,
      reason: /nonce 1 below it is held by nothing/,
      repair: (scene, txId) => scene.fencepost.resolve(txId, { reason: "fill them", action: "PLACEHOLDER" }),
    },
  },
];

export const RESETS: readonly Trouble[] = [
  {
    name: "the endpoint serves another chain with the same id for a while",
    setting: { still: true },
    async strike(scene) {
      await scene.pay(0);
      await scene.untilTaken(0);
      await scene.chain.mine(4);
      await scene.untilAre("CONFIRMED", 0);
      await scene.payAll(1);
      await scene.untilTaken(1);
      const reset = await startEmbeddedChain({ mnemonic: OTHER_MNEMONIC, blockTimeMs: 40 });
      try {
        scene.proxy.retarget(reset.url);
        await scene.untilAlert("CHAIN_DISTRUSTED");
        const asked = scene.pay(2);
        await scene.chain.mine(4);
        await scene.until(async () => (await scene.view(1)).state === "TRACKING", "nothing was decided");
        scene.proxy.retarget(scene.chain.node.url);
        await scene.untilAlert("CHAIN_TRUSTED_AGAIN");
        await asked;
      } finally {
        await reset.stop();
      }
    },
  },
];
