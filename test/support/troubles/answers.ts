/** Faults of an endpoint's responses: lost, late, wrapped or false. */

import { keccak256 } from "viem";
import { expect } from "vitest";
import type { Hex } from "../../../src/domain/lane.ts";
import {
  badGateway,
  hang,
  hangAfterwards,
  pretend,
  type RpcProxy,
  type Rule,
  refuseWith,
  rewrite,
  swallow,
  wrapErrors,
} from "../rpc-proxy.ts";
import { COUNT, type Scene, SEND } from "./scene.ts";
import type { Trouble } from "./trouble.ts";

const answersOf = (scene: Scene) => scene.answers.map(({ answer }) => answer);

export const LOST_ANSWERS: readonly Trouble[] = [
  {
    name: "replies to sends are swallowed",
    setting: { still: true },
    async strike(scene) {
      const lost = scene.onSends(swallow, 4);
      await scene.payAll(0, 1, 2);
      await scene.untilStruck(lost, 4);
    },
  },
  {
    name: "every fifth response is lost, for any request",
    async strike(scene) {
      await scene.pay(0);
      let calls = 0;
      const lost = scene.proxy.rule({ when: () => ++calls % 5 === 0 }, swallow);
      await scene.payAll(1, 2);
      await scene.untilStruck(lost, 8);
      lost.lift();
    },
  },
  {
    name: "sends hang and never reach the chain",
    async strike(scene) {
      const lost = scene.onSends(hang, 1);
      await scene.payAll(0, 1);
      await scene.untilStruck(lost);
      await scene.until(() => answersOf(scene).includes("unknown"), "no caller has waited for ever");
    },
  },
  {
    name: "sends hang after the chain accepted them",
    async strike(scene) {
      const lost = scene.onSends(hangAfterwards, 1);
      await scene.payAll(0, 1);
      await scene.untilStruck(lost);
    },
  },
  {
    name: "everything hangs for a while",
    async strike(scene) {
      await scene.pay(0);
      const lost = scene.proxy.rule({}, hang);
      await scene.pay(1);
      await scene.untilStruck(lost, 3);
      lost.lift();
      await scene.pay(2);
    },
  },
  {
    name: "a gateway responds with 502 and HTML",
    async strike(scene) {
      await scene.pay(0);
      const down = scene.proxy.rule({}, badGateway);
      await scene.pay(1);
      await scene.untilStruck(down, 4);
      down.lift();
      await scene.pay(2);
    },
  },
  {
    name: "errors are wrapped in -32603, and a node already has the bytes",
    setting: { still: true, chain: { reprice: "off" } },
    async strike(scene) {
      scene.onSends(wrapErrors);
      const lost = scene.onSends(swallow, 2);
      await scene.payAll(0, 1);
      await scene.untilStruck(lost, 2);
      await scene.until(() => answersOf(scene).includes("alreadyKnown"), "the wrapped words are understood");
    },
  },
];

export const LIES: readonly Trouble[] = [
  {
    name: "a node refuses a fresh nonce as too low",
    setting: { still: true },
    async strike(scene) {
      const lie = scene.onSends(refuseWith("nonce too low"), 3);
      await scene.payAll(0, 1);
      await scene.untilStruck(lie, 3);
    },
  },
  {
    name: "a node refuses the next nonce as too high",
    setting: { still: true },
    async strike(scene) {
      const lie = scene.onSends(refuseWith("nonce too high"), 3);
      await scene.payAll(0, 1);
      await scene.untilStruck(lie, 3);
    },
  },
  {
    name: "a revert reason reads like nonce too low",
    setting: { still: true },
    async strike(scene) {
      const lie = scene.onSends(refuseWith("execution reverted: nonce too low", 3), 3);
      await scene.payAll(0, 1);
      await scene.untilStruck(lie, 3);
    },
  },
  {
    name: "an endpoint reports too high a count once",
    async strike(scene) {
      await scene.payAll(0);
      const lie = scene.proxy.rule({ methods: [COUNT], times: 1 }, raised(5));
      await scene.until(() => lie.struck === 1, "the lie was told");
      await scene.payAll(1, 2);
    },
  },
  {
    name: "an endpoint reports too low a count for a while",
    async strike(scene) {
      await scene.payAll(0, 1);
      await scene.untilAre("CONFIRMED", 0, 1);
      const lie = scene.proxy.rule(
        { methods: [COUNT], times: 12 },
        pretend(() => "0x0"),
      );
      await scene.payAll(2, 3);
      await scene.untilStruck(lie, 12);
    },
  },
  {
    name: "one of two endpoints always reports too high a count",
    setting: { spare: true },
    async strike(scene) {
      const lie = scene.proxy.rule({ methods: [COUNT] }, raised(5));
      const asked = scene.pay(0);
      await scene.untilStruck(lie, 6);
      lie.lift();
      await asked;
    },
  },
  {
    // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
    name: "one of two endpoints counts forty too many for good, and the other is always a block late",
    setting: { spare: true },
    async strike(scene) {
      await scene.payAll(0, 1, 2);
      await scene.untilAre("CONFIRMED", 0, 1, 2);
      const late = lagging(scene.spare, scene, { blocks: 1 });
      // Stop mining, so that the chain's real transaction count cannot reach the false one.
      await scene.chain.pause();
      const lie = scene.proxy.rule({ methods: [COUNT] }, raised(40));
      const asked = scene.pay(3);
      await scene.untilStruck(lie, 16);
      lie.lift();
      expect((await asked).nonce).toBe(3);
      late.lift();
    },
  },
  {
    // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
    name: "one of three endpoints counts forty too many for good: the two others, a block late, outvote it",
    setting: { spare: 2 },
    async strike(scene) {
      const late = scene.spares.map((spare) => lagging(spare, scene, { blocks: 1 }));
      const lie = scene.proxy.rule({ methods: [COUNT], when: ({ params }) => params[1] === "latest" }, raised(40));
      expect([(await scene.pay(0)).nonce, (await scene.pay(1)).nonce]).toEqual([0, 1]);
      await scene.untilAre("CONFIRMED", 0, 1);
      expect((await scene.pay(2)).nonce).toBe(2);
      lie.lift();
      for (const rule of late) rule.lift();
    },
  },
  {
    name: "a node reports transactions as accepted and drops them",
    setting: { still: true },
    async strike(scene) {
      const lie = scene.onSends(
        pretend(({ params }) => keccak256(params[0] as Hex)),
        3,
      );
      await scene.payAll(0, 1);
      await scene.untilStruck(lie, 3);
    },
  },
];

const raised = (by: number) => rewrite((count) => `0x${(Number(count) + by).toString(16)}`);

/** Makes an endpoint's "latest" block lag by this many blocks. */
function lagging(
  proxy: RpcProxy,
  scene: Scene,
  { blocks, when = () => true }: { readonly blocks: number; readonly when?: () => boolean },
): Rule {
  const methods = [
    "eth_getBlockByNumber",
    "eth_blockNumber",
    COUNT,
    "eth_getTransactionReceipt",
    "eth_getBlockReceipts",
  ];
  return proxy.rule({ methods, when }, async (call, next) => {
    const head = Number(await scene.chain.node.rpc("eth_blockNumber")) - blocks;
    const back = `0x${Math.max(head, 0).toString(16)}`;
    if (call.method === "eth_blockNumber") return { result: back };
    if (call.method === COUNT || call.method === "eth_getBlockByNumber") {
      const at = call.method === COUNT ? 1 : 0;
      return past(await next({ ...call, params: call.params.with(at, heightOf(call.params[at], back)) }), head);
    }
    return past(await next(), head);
  });
}

function heightOf(asked: unknown, head: string): unknown {
  return asked === "latest" || asked === "pending" ? head : asked;
}

/** Removes a response about a block above `head`, the newest block of a lagging endpoint. */
function past<T extends { readonly result: unknown } | { readonly error: unknown }>(reply: T, head: number) {
  if (!("result" in reply)) return reply;
  const [first] = Array.isArray(reply.result) ? reply.result : [reply.result];
  const { number, blockNumber } = (typeof first === "object" && first !== null ? first : {}) as Record<string, string>;
  return Number(number ?? blockNumber ?? 0) > head ? { result: null } : reply;
}

export const HEIGHTS: readonly Trouble[] = [
  {
    name: "the endpoint lags behind",
    async strike(scene) {
      const stale = lagging(scene.proxy, scene, { blocks: 4 });
      await scene.payAll(0, 1, 2);
      await scene.untilMined(0);
      await scene.untilStruck(stale, 50);
      stale.lift();
    },
  },
  {
    name: "two machines at different heights take turns behind one URL",
    async strike(scene) {
      let turn = 0;
      const stale = lagging(scene.proxy, scene, { blocks: 3, when: () => ++turn % 2 === 0 });
      await scene.payAll(0, 1, 2);
      await scene.untilStruck(stale, 60);
      stale.lift();
    },
  },
];

export const RECEIPTS: readonly Trouble[] = [
  {
    name: "receipts cannot be had while the nonce goes on",
    setting: { still: true },
    async strike(scene) {
      const down = scene.proxy.rule({ methods: ["eth_getTransactionReceipt", "eth_getBlockReceipts"] }, badGateway);
      await scene.payAll(0, 1, 2);
      await scene.untilTaken(0, 1, 2);
      await scene.chain.mine(8);
      await scene.untilStruck(down, 5);
      // While receipts are unavailable, the node must not derive an outcome from the responses to its sends.
      scene.chain.resume();
      await scene.until(() => scene.proxy.calls.filter(({ method }) => method === SEND).length >= 3, "sent");
      await scene.untilStruck(down, 12);
      down.lift();
    },
  },
  {
    name: "receipts are reported as missing while the mined count rises",
    setting: { still: true },
    async strike(scene) {
      const blind = scene.proxy.rule(
        { methods: ["eth_getTransactionReceipt"] },
        pretend(() => null),
      );
      const also = scene.proxy.rule(
        { methods: ["eth_getBlockReceipts"] },
        pretend(() => []),
      );
      await scene.payAll(0, 1);
      await scene.untilTaken(0, 1);
      await scene.chain.mine(8);
      scene.chain.resume();
      await scene.until(() => blind.struck + also.struck >= 12, "neither endpoint could show them");
      blind.lift();
      also.lift();
    },
  },
];
