/**
 * Tests the real chain adapter with two proxies in front of one real chain. The clock is simulated: every five seconds
 * there is a new block, and a request for the newest block.
 */
import { afterEach, describe, expect, it } from "vitest";
import { createEvmChain } from "../../../src/adapters/evm/chain.ts";
import { startEmbeddedChain } from "../../../src/main/dev/embedded/start-chain.ts";
import type { Chain } from "../../../src/ports/chain.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { type RpcProxy, type Rule, startRpcProxy } from "../../support/rpc-proxy.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const BLOCK_SECONDS = 5;
const toHex = (number: number) => `0x${number.toString(16)}`;

async function stage() {
  const node = await startEmbeddedChain();
  const [preferred, spare] = [await startRpcProxy(node.url), await startRpcProxy(node.url)];
  const clock = createManualClock();
  const telemetry = recordTelemetry();
  const urls = [preferred.url, spare.url];
  // A long timeout: the simulated seconds pass faster than a real request.
  const timeoutMs = 600_000;
  const chain = await createEvmChain({ urls, telemetry, clock, entropy: createSeededEntropy(1), timeoutMs });
  closing.push(
    () => node.stop(),
    ...[preferred, spare].map((proxy) => () => proxy.close()),
    () => chain.close(),
  );
  let seconds = 0;
  const pass = async (blocks: number): Promise<void> => {
    for (let block = 0; block < blocks; block++) {
      await node.mine();
      seconds += BLOCK_SECONDS;
      await clock.advance(BLOCK_SECONDS * 1_000);
      await headOf(chain);
    }
  };
  const secondsUntil = async (fact: () => Promise<boolean>): Promise<number> => {
    const from = seconds;
    while (!(await fact())) {
      if (seconds - from > 600) throw new Error("not within ten minutes");
      await pass(1);
    }
    return seconds - from;
  };
  const alerts = () => telemetry.of("alert").map(({ code }) => code);
  return { preferred, spare, chain, pass, secondsUntil, alerts };
}

async function headOf(chain: Chain): Promise<number> {
  return (await chain.head("latest"))?.number ?? -1;
}

/** Makes the endpoint behind this proxy report no block above `head`. */
function pin(proxy: RpcProxy, head: number): Rule {
  return proxy.rule({ methods: ["eth_blockNumber", "eth_getBlockByNumber"] }, async (call, next) => {
    if (call.method === "eth_blockNumber") return { result: toHex(head) };
    const asked = call.params[0] === "latest" ? head : Number(call.params[0]);
    return asked > head ? { result: null } : next({ ...call, params: [toHex(asked), false] });
  });
}

describe("reads from two endpoints", () => {
  // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts, src/adapters/evm/rpc/endpoints.ts
  it("skip a preferred endpoint that has had no new block for a minute", async () => {
    const { preferred, chain, pass, secondsUntil, alerts } = await stage();
    await pass(5);
    const still = pin(preferred, 5);
    expect(await secondsUntil(async () => (await headOf(chain)) > 5)).toBeGreaterThanOrEqual(60);
    expect(alerts()).toEqual(["RPC_BEHIND"]);
    still.lift();
    const asked = preferred.calls.length;
    const isRead = () => preferred.calls.slice(asked).some(({ params }) => params[0] === "latest");
    await secondsUntil(async () => isRead());
  });

  it("do not confirm block hashes with an endpoint that has had no new block for a minute", async () => {
    const { spare, chain, pass, secondsUntil } = await stage();
    await pass(25);
    pin(spare, 5);
    const signer = `0x${"11".repeat(20)}` as const;
    const kinds = async () => (await chain.transactionCountEverywhere(signer, 20)).map(({ kind }) => kind);
    await pass(4);
    expect(await kinds()).toEqual(["says", "behind"]);
    expect(await chain.secondOpinion(20)).toEqual({ kind: "behind" });
    await secondsUntil(async () => (await kinds()).length === 1);
    expect(await chain.secondOpinion(20)).toEqual({ kind: "none" });
  });

  // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts
  it("use the honest endpoint if the other endpoint claims a false block height", async () => {
    const { preferred, chain, pass, alerts } = await stage();
    preferred.rule({ methods: ["eth_blockNumber"] }, async (_, next) => {
      const reply = await next();
      return "result" in reply ? { result: toHex(Number(reply.result) + 1_000) } : reply;
    });
    await pass(40);
    expect(alerts()).toEqual([]);
    expect(await chain.secondOpinion(20)).toMatchObject({ kind: "agreed" });
  });
});
