/** Faults of mempools that drop or refuse transactions, of block prices, and of account balances. */
import { expect } from "vitest";
import { SIGNER } from "../integration.ts";
import { refuseWith } from "../rpc-proxy.ts";
import { GWEI, type Scene } from "./scene.ts";
import type { Trouble } from "./trouble.ts";

const CHEAP = { fees: { maxFeePerGas: 4n * GWEI, maxPriorityFeePerGas: GWEI } };

const setBalance = ({ chain }: Scene, wei: bigint) =>
  chain.node.rpc("hardhat_setBalance", [SIGNER, `0x${wei.toString(16)}`]);

export const POOL: readonly Trouble[] = [
  {
    name: "a pool drops the head",
    setting: { still: true },
    async strike(scene) {
      await scene.payAll(0, 1, 2);
      await scene.untilTaken(0, 1, 2);
      await scene.chain.drop((await scene.view(0)).txHash as string);
    },
  },
  {
    name: "a pool evicts everything, twice",
    setting: { still: true },
    async strike(scene) {
      await scene.payAll(0, 1, 2);
      await scene.untilTaken(0, 1, 2);
      await scene.chain.dropAll();
      await scene.until(async () => (await scene.chain.pool()).length === 3, "all are sent again");
      await scene.chain.dropAll();
    },
  },
];

export const MARKET: readonly Trouble[] = [
  {
    name: "the base fee rises over what was offered",
    setting: { still: true },
    async strike(scene) {
      await scene.pay(0, CHEAP);
      await scene.pay(1, CHEAP);
      await scene.untilTaken(0, 1);
      await scene.chain.holdBaseFee(9n * GWEI);
      scene.chain.resume();
      await scene.untilAttempts(0, 2);
    },
  },
  {
    name: "the base fee spikes over the ceiling and falls again",
    setting: { still: true, chain: { maxFeeGwei: 6, stuckAfter: "1s" } },
    async strike(scene) {
      await scene.pay(0, CHEAP);
      await scene.pay(1, CHEAP);
      await scene.untilTaken(0, 1);
      await scene.chain.holdBaseFee(80n * GWEI);
      scene.chain.resume();
      await scene.untilAre("STUCK", 0);
      await scene.chain.holdBaseFee(GWEI);
      await scene.untilAre("CONFIRMED", 0, 1);
    },
    afterwards: CHEAP,
  },
  {
    name: "the base fee stays over the ceiling",
    policies: ["move"],
    setting: { still: true, chain: { maxFeeGwei: 6, stuckAfter: "1s" } },
    async strike(scene) {
      await scene.pay(0, CHEAP);
      await scene.untilTaken(0);
      await scene.chain.holdBaseFee(12n * GWEI);
    },
    stuck: {
      payload: 0,
      reason: /the ceiling of 6000000000 wei/,
      async repair(scene, txId) {
        const dearer = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
        const repriced = scene.fencepost.reprice(txId, { reason: "must be mined", ...dearer });
        await expect(repriced).rejects.toThrow(/above the ceiling of 6000000000/);
        await scene.fencepost.resubmit(txId, { reason: "the base fee falls" });
        await scene.chain.holdBaseFee(GWEI);
        await scene.untilAre("CONFIRMED", 0);
      },
    },
    afterwards: CHEAP,
  },
];

export const FUNDS: readonly Trouble[] = [
  {
    name: "the account is emptied, and is filled again",
    setting: { still: true },
    async strike(scene) {
      await scene.payAll(0, 1);
      await scene.untilTaken(0, 1);
      await setBalance(scene, 1_000n);
      await scene.chain.dropAll();
      await scene.untilAlert("INSUFFICIENT_FUNDS");
      await setBalance(scene, 10n ** 20n);
    },
  },
  {
    name: "the balance runs out after the first transaction",
    setting: { still: true },
    async strike(scene) {
      await scene.pay(0);
      await scene.untilTaken(0);
      await setBalance(scene, 100_000n * 20n * GWEI);
      await scene.chain.mine();
      await scene.payAll(1, 2);
      await scene.untilAlert("INSUFFICIENT_FUNDS");
      await setBalance(scene, 10n ** 20n);
    },
  },
];

export const REFUSALS: readonly Trouble[] = [
  {
    name: "no node accepts the head",
    async strike(scene) {
      const refusing = scene.onSendOf(1, refuseWith("transaction type not supported"));
      await scene.payAll(0, 1, 2);
      await scene.untilStruck(refusing, 2);
    },
    ends: { 1: "FAILED_FINAL/CANCELLED" },
    stuck: {
      payload: 1,
      reason: /no node will take it: rejected: transaction type not supported/,
      repair: (scene, txId) => scene.fencepost.cancel(txId, { reason: "nobody takes it" }),
    },
  },
  {
    name: "no node accepts the head, and it is replaced",
    policies: ["move"],
    async strike(scene) {
      const refusing = scene.onSendOf(0, refuseWith("oversized data"));
      await scene.payAll(0, 1);
      await scene.untilStruck(refusing, 2);
    },
    ends: { 0: "CONFIRMED/REPLACED" },
    stuck: {
      payload: 0,
      reason: /no node will take it: rejected: oversized data/,
      repair: (scene, txId) =>
        scene.fencepost.replace(txId, {
          reason: "a smaller one",
          payload: { to: "0x00000000000000000000000000000000000000AA", value: "5" },
        }),
    },
  },
  {
    name: "one node refuses the bytes, another accepts them",
    setting: { spare: true },
    async strike(scene) {
      const refusing = scene.onSends(refuseWith("transaction type not supported"));
      await scene.payAll(0, 1, 2);
      await scene.untilStruck(refusing, 2);
    },
  },
];
