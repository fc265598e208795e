/** Tests how many requests are sent if fifty lanes need their transaction counts in the same poll. */
import { describe, expect, it } from "vitest";
import { ChainContext } from "../../../src/application/chain/chain-context.ts";
import { OwnedLane } from "../../../src/application/lane/owned-lane.ts";
import { Term } from "../../../src/application/lane/term.ts";
import { nonceFloor } from "../../../src/application/stages/2-allocate/allocate.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { ENDLESS } from "../../support/chain-bench.ts";
import { type EvmBench, useEvmBench } from "../../support/evm-bench.ts";
import { type FaultyRpc, Refusal, type RpcRequest } from "../../support/faulty-rpc.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { CHAIN_SETTINGS } from "../../support/world.ts";

const bench = useEvmBench();
const LANES = 50;
const USED = 41;
const POLL_MS = CHAIN_SETTINGS.pollIntervalMs;

function laneOf(index: number): OwnedLane {
  const signer = `0x${(index + 1).toString(16).padStart(40, "c")}` as Address;
  const fence = { lane: { chainId: 31_337, signer }, instanceId: "instance", token: 1 };
  const nothing = { tracking: [], allocated: 0, watched: [], holes: [], reservations: [] };
  const snapshot = { cursor: null, suspendedBy: null, reconciled: true, epochFloor: 0, genesisHash: null, ...nothing };
  return new OwnedLane(new Term(fence, ENDLESS), snapshot, { hashes: new Map(), onChain: new Set() });
}

const LANES_OF_ALL = Array.from({ length: LANES }, (_, index) => laneOf(index));

function callsOf({ calls }: FaultyRpc): number {
  return calls("eth_getTransactionCount").length + calls("eth_blockNumber").length;
}

function countingIn({ requests }: FaultyRpc): readonly (readonly RpcRequest[])[] {
  const counts = (calls: readonly RpcRequest[]) => calls.some(({ method }) => method === "eth_getTransactionCount");
  return requests.map(({ calls }) => calls).filter(counts);
}

async function open(): Promise<EvmBench> {
  const opened = await bench({ endpoints: 2 });
  for (const server of [opened.server, opened.other]) {
    server.on("eth_blockNumber", () => "0x7");
    server.on("eth_getTransactionCount", () => `0x${USED.toString(16)}`);
  }
  return opened;
}

/**
 * Reads the transaction counts of all lanes. Every lane is new, and its key was used before. So each count is read
 * twice, a poll interval apart, on both endpoints.
 */
async function floorsOf({ chain, clock, telemetry }: EvmBench): Promise<readonly PromiseSettledResult<unknown>[]> {
  const context = new ChainContext(chain, CHAIN_SETTINGS, { clock, telemetry });
  const floors = Promise.allSettled(LANES_OF_ALL.map((lane) => nonceFloor({ clock, telemetry }, context, lane)));
  const answered = () => telemetry.of("rpc.request").filter(({ method }) => method === "eth_getTransactionCount");
  await waitUntil(() => answered().reduce((sum, { calls }) => sum + calls, 0) >= 2 * LANES, "both have counted once");
  await clock.advance(POLL_MS);
  return floors;
}

const PROVED = LANES_OF_ALL.map(() => ({ status: "fulfilled", value: USED }));

describe("transaction counts of fifty new lanes", () => {
  // protects [Keys of the node, other chains, comparison] src/application/chain/counts.ts, src/adapters/evm/reads/read-sent.ts
  it("are read in one request per endpoint", async () => {
    const opened = await open();
    expect(await floorsOf(opened)).toEqual(PROVED);
    // For comparison: reading the count of each lane separately took 51 requests and 200 calls.
    for (const server of [opened.server, opened.other]) {
      expect([countingIn(server).length, callsOf(server)]).toEqual([2, 2 * (LANES + 1)]);
    }
  });

  // protects [Keys of the node, other chains, comparison] src/adapters/evm/reads/read-sent.ts
  it("are read in batches of the size that an endpoint accepts", async () => {
    const opened = await open();
    opened.other.refuseBatches({ jsonrpc: "2.0", id: null, error: { code: -32_600, message: "batch too large" } }, 30);
    expect(await floorsOf(opened)).toEqual(PROVED);
    // The endpoint first refused one batch with the newest block number and the counts of all lanes. After that,
    // batches are at most half as large.
    const again = countingIn(opened.other).slice(-3);
    expect(again.map((calls) => calls.length).toSorted((a, b) => b - a)).toEqual([25, 25, 3]);
    expect(again.map(([first]) => first?.method)).toEqual(again.map(() => "eth_blockNumber"));
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/answers.ts, src/adapters/evm/reads/read-sent.ts
  it("are read for the other lanes if the endpoint refuses the count of one lane", async () => {
    const opened = await open();
    const [refused] = LANES_OF_ALL as [OwnedLane];
    opened.other.on("eth_getTransactionCount", ([address]) => {
      if (address === refused.lane.signer) throw new Refusal(-32_000, "not today");
      return `0x${USED.toString(16)}`;
    });
    const floors = floorsOf(opened);
    const advancing = waitUntil(async () => {
      await opened.clock.advance(POLL_MS);
      return opened.clock.armedTimers === 0;
    }, "the refused one has given up");
    expect((await floors).slice(1)).toEqual(PROVED.slice(1));
    expect((await floors)[0]).toMatchObject({ status: "rejected", reason: { code: "UNAVAILABLE" } });
    await advancing;
  });
});

describe("a transaction count", () => {
  const TOO_LARGE = { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "batch too large" } };

  it.each([
    ["no batches", 1],
    ["two calls at once", 2],
    // protects [Keys of the node, other chains, comparison] src/adapters/evm/reads/read-sent.ts, src/adapters/evm/rpc/transport.ts
  ])("is not older than the newest block read with the count if the endpoint accepts %s", async (_, longest) => {
    const { chain, server } = await bench();
    server.refuseBatches(TOO_LARGE, longest);
    // Block 8 has one more transaction of each signer. It arrives during the request for the newest block number, after
    // a count was returned.
    let [head, counted] = [7, false];
    server.on("eth_getTransactionCount", () => {
      counted = true;
      return `0x${(head < 8 ? USED : USED + 1).toString(16)}`;
    });
    server.on("eth_blockNumber", async () => {
      for (let turn = 0; turn < 50 && !counted; turn++) await new Promise(setImmediate);
      if (counted) head = 8;
      return `0x${head}`;
    });
    const signers = LANES_OF_ALL.slice(0, 3).map(({ lane }) => lane.signer);
    const ask = () => Promise.all(signers.map((signer) => chain.transactionCountEverywhere(signer, 8)));
    expect((await ask()).flat()).not.toContainEqual({ kind: "says", count: USED });
    [head, counted] = [7, false];
    expect((await ask()).flat()).not.toContainEqual({ kind: "says", count: USED });
    expect(server.calls("eth_getTransactionCount").length).toBeGreaterThanOrEqual(2 * signers.length);
  });
});
