/** What a single endpoint says of receipts, held against the hash of their block; on a real EVM behind a proxy. */
import { afterEach, describe, expect, it } from "vitest";
import { BlockProver } from "../../../../src/adapters/evm/proof/block-prover.ts";
import { Endpoint } from "../../../../src/adapters/evm/rpc/endpoint.ts";
import { createTransport } from "../../../../src/adapters/evm/rpc/transport.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import type { Hash } from "../../../../src/domain/lane.ts";
import type { Receipt } from "../../../../src/domain/transaction.ts";
import { type Block, ChainUnavailable, type ReceiptVerdict } from "../../../../src/ports/chain.ts";
import {
  type Json,
  type LyingEndpoints,
  lieAboutReceipts,
  proxyAt,
  startLyingEndpoints,
} from "../../../support/lying-endpoints.ts";
import { badGateway, type RpcProxy, refuseWith, rewrite, type Treatment } from "../../../support/rpc-proxy.ts";
import { mineVariedBlock } from "../../../support/varied-block.ts";

let harness: LyingEndpoints;
afterEach(() => harness.close());

interface Bench {
  readonly proxy: RpcProxy;
  /** The block holds a transaction of every type, a deployment with a log, and one that reverted. */
  readonly hashes: readonly Hash[];
  readonly deployment: Hash;
  settle(hashes?: readonly Hash[]): Promise<readonly ReceiptVerdict[]>;
}

async function open(endpoints = 1, depth = 0): Promise<Bench> {
  harness = await startLyingEndpoints(endpoints);
  const { block, receipts } = await mineVariedBlock(harness.node);
  const place = { number: Number(block.number), hash: block.hash as Hash };
  const hashes = block.transactions.map(({ hash }) => hash);
  const logging = receipts.findIndex(({ logs }) => (logs as readonly unknown[]).length > 0);
  return {
    proxy: proxyAt(harness.proxies, 0),
    hashes,
    deployment: hashes[logging] as Hash,
    settle: (wanted = hashes) =>
      harness.chain.settleReceipts(
        place,
        wanted.map((txHash) => ({ txHash })),
        depth,
      ),
  };
}

const kindsOf = (verdicts: readonly ReceiptVerdict[]) => [...new Set(verdicts.map(({ kind }) => kind))];
const changeBlock = (proxy: RpcProxy, change: (block: Json) => Json) =>
  proxy.rule(
    { methods: ["eth_getBlockByHash"] },
    rewrite((block) => change(block as Json)),
  );
const roundTrips = ({ calls }: RpcProxy, method: string) => calls.filter((call) => call.method === method).length;

describe("an honest endpoint", () => {
  it("proves every receipt of a block, asked for the block once", async () => {
    const { proxy, hashes, settle } = await open();
    const verdicts = await settle();
    const receipts = await harness.chain.receipts(hashes);
    expect(verdicts).toEqual(receipts.map((receipt) => ({ kind: "agreed", receipt })));
    await settle();
    await settle(hashes.slice(2));
    const whole = proxy.requests.filter((methods) => methods.includes("eth_getBlockReceipts"));
    expect(whole, "in one request").toEqual([["eth_getBlockByHash", "eth_getBlockReceipts"]]);
  });

  it("proves them without eth_getBlockReceipts, too", async () => {
    const { proxy, settle } = await open();
    proxy.rule({ methods: ["eth_getBlockReceipts"] }, refuseWith("the method does not exist", -32_601));
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });

  it("is no liar where its receipts, asked for one by one, are an error: that decides nothing", async () => {
    const { proxy, hashes, settle } = await open();
    proxy.rule({ methods: ["eth_getBlockReceipts"] }, refuseWith("the method does not exist", -32_601));
    const { lift } = proxy.rule(
      { methods: ["eth_getTransactionReceipt"], when: ({ params }) => params[0] === hashes[0] },
      refuseWith("internal error"),
    );
    await expect(settle()).rejects.toThrow(ChainUnavailable);
    lift();
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });

  it("is asked again where the thread that proves it died: that decides nothing", async () => {
    const { proxy, hashes } = await open();
    const block = (await harness.chain.head("latest")) as Block;
    const transport = { url: proxy.url, clock: systemClock, timeoutMs: 50_000, report: () => undefined };
    const endpoint = new Endpoint(0, createTransport(transport), "yes");
    const prover = new BlockProver();
    await prover.close();
    const settled = prover.settle(
      endpoint,
      block,
      hashes.map((txHash) => ({ txHash })),
    );
    await expect(settled).rejects.toThrow(ChainUnavailable);
    await endpoint.rpc.close();
  });

  it("is asked again where it did not answer: that decides nothing", async () => {
    const { proxy, settle } = await open();
    const rule = proxy.rule({ methods: ["eth_getBlockByHash"] }, badGateway);
    await expect(settle()).rejects.toThrow(ChainUnavailable);
    rule.lift();
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });

  it("whose price is not what the transaction could have paid is believed in all but that", async () => {
    const { proxy, hashes, settle } = await open();
    lieAboutReceipts(proxy, hashes[2] as Hash, (receipt) => ({ ...receipt, effectiveGasPrice: "0x1" }));
    const prices = (await settle()).map((verdict) => verdict.kind === "agreed" && verdict.receipt.effectiveGasPrice);
    expect(prices.map((price) => price === null)).toEqual(hashes.map((_, index) => index === 2));
  });
});

it("what a lone endpoint says was paid beside gas is not sure: no block commits to it", async () => {
  const { proxy, hashes, settle } = await open();
  lieAboutReceipts(proxy, hashes[2] as Hash, (receipt) => ({
    ...receipt,
    blobGasUsed: "0x20000",
    blobGasPrice: "0x1",
  }));
  const unsure = (await settle()).map((verdict) => verdict.kind === "agreed" && verdict.receipt.besideGasUnsure);
  expect(unsure).toEqual(hashes.map((_, index) => (index === 2 ? true : undefined)));
});

describe("an endpoint that contradicts its own block is believed in nothing of it:", () => {
  it.each<[string, (receipt: Json) => Json | null]>([
    ["other logs", (receipt) => ({ ...receipt, logs: [] })],
    [
      "a log of another contract",
      ({ logs, ...receipt }) => ({
        ...receipt,
        logs: (logs as readonly Json[]).map((log) => ({ ...log, address: `0x${"ee".repeat(20)}` })),
      }),
    ],
    ["no contract", (receipt) => ({ ...receipt, contractAddress: null })],
    ["another sum of gas", (receipt) => ({ ...receipt, cumulativeGasUsed: "0x1" })],
    ["no receipt", () => null],
  ])("%s", async (_, lie) => {
    const { proxy, deployment, settle } = await open();
    const rule = lieAboutReceipts(proxy, deployment, lie);
    expect(kindsOf(await settle())).toEqual(["disagree"]);
    rule.lift();
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });

  it("receipts under each other's names", async () => {
    const { proxy, hashes, settle } = await open();
    const [first, , third] = hashes as readonly [Hash, Hash, Hash];
    const names = new Map<unknown, Hash>([
      [first, third],
      [third, first],
    ]);
    lieAboutReceipts(proxy, null, (receipt) => {
      const { transactionHash } = receipt;
      return { ...receipt, transactionHash: names.get(transactionHash) ?? transactionHash };
    });
    expect(await settle()).toContainEqual({ kind: "disagree", answers: [expect.stringContaining("receiptsRoot")] });
  });

  it("transactions in another order", async () => {
    const { proxy, settle } = await open();
    changeBlock(proxy, (block) => ({ ...block, transactions: (block.transactions as readonly Json[]).toReversed() }));
    expect(await settle()).toContainEqual({ kind: "disagree", answers: [expect.stringContaining("transactionsRoot")] });
  });

  it("other contents under our hash", async () => {
    const { proxy, hashes, settle } = await open();
    const change = (each: Json) => (each.hash === hashes[2] ? { ...each, value: "0x8" } : each);
    changeBlock(proxy, (block) => ({ ...block, transactions: (block.transactions as readonly Json[]).map(change) }));
    expect(kindsOf(await settle())).toEqual(["disagree"]);
  });

  it("a block without receipts", async () => {
    const { proxy, settle } = await open();
    proxy.rule(
      { methods: ["eth_getBlockReceipts"] },
      rewrite(() => null),
    );
    expect(kindsOf(await settle())).toEqual(["disagree"]);
  });
});

describe("an endpoint of a chain that nothing can be proved of", () => {
  it.each<[string, (block: Json) => Json]>([
    ["has a header of its own", (block) => ({ ...block, requestsHash: undefined, l1BlockNumber: "0x1" })],
    [
      "has transactions of its own",
      (block) => ({ ...block, transactions: [{ ...(block.transactions as readonly Json[])[0], type: "0x7e" }] }),
    ],
  ])("%s: believed as it is, and its blocks are not fetched one by one to find that out", async (_, change) => {
    const { proxy, settle } = await open();
    changeBlock(proxy, change);
    expect(kindsOf(await settle())).toEqual(["unproven"]);
    const fetched = roundTrips(proxy, "eth_getBlockByHash");
    expect(kindsOf(await settle())).toEqual(["unproven"]);
    expect(roundTrips(proxy, "eth_getBlockByHash")).toBe(fetched);
  });

  it.each<[string, Treatment]>([
    ["without a receipt", async () => ({ result: null })],
    ["whose receipt is an error", refuseWith("transaction type not supported")],
  ])("holds a transaction of its own %s: believed as it is, without eth_getBlockReceipts too", async (_, answer) => {
    const { proxy, hashes, settle } = await open();
    proxy.rule({ methods: ["eth_getBlockReceipts"] }, refuseWith("the method does not exist", -32_601));
    changeBlock(proxy, (block) => {
      const [system, ...others] = block.transactions as readonly Json[];
      return { ...block, transactions: [{ ...system, type: "0x7e" }, ...others] };
    });
    proxy.rule({ methods: ["eth_getTransactionReceipt"], when: ({ params }) => params[0] === hashes[0] }, answer);
    expect(kindsOf(await settle(hashes.slice(1)))).toEqual(["unproven"]);
  });

  it("is refused whole: believed as it is", async () => {
    const { proxy, settle } = await open();
    proxy.rule({ methods: ["eth_getBlockByHash"] }, refuseWith("response size exceeded"));
    expect(kindsOf(await settle())).toEqual(["unproven"]);
  });

  it("holds more than is fetched whole: believed as it is", async () => {
    const { proxy, settle } = await open();
    changeBlock(proxy, (block) => ({ ...block, transactions: Array.from({ length: 5_001 }, () => ({})) }));
    expect(kindsOf(await settle())).toEqual(["unproven"]);
  });
});

describe("two endpoints", () => {
  it.each<[string, (receipt: Json) => Json]>([
    ["other logs", (receipt) => ({ ...receipt, logs: [] })],
    ["no contract", (receipt) => ({ ...receipt, contractAddress: null })],
  ])("of which one shows %s decide nothing", async (_, lie) => {
    const { proxy, deployment, settle } = await open(2);
    const rule = lieAboutReceipts(proxy, deployment, lie);
    expect(await settle([deployment])).toMatchObject([{ kind: "disagree", answers: { length: 2 } }]);
    rule.lift();
    expect(kindsOf(await settle([deployment]))).toEqual(["agreed"]);
  });

  it("may differ in what decides nothing: the address of a contract, and of one that reverted; the price is then unknown", async () => {
    const { proxy, deployment, hashes, settle } = await open(2);
    lieAboutReceipts(proxy, null, (receipt) => ({
      ...receipt,
      ...(receipt.to === null ? { contractAddress: `0x${"ee".repeat(20)}` } : {}),
      effectiveGasPrice: "0x1",
    }));
    const verdicts = await settle();
    expect(kindsOf(verdicts)).toEqual(["agreed"]);
    const receipts = verdicts.flatMap((verdict): readonly Receipt[] =>
      verdict.kind === "agreed" ? [verdict.receipt] : [],
    );
    expect(new Set(receipts.map(({ effectiveGasPrice }) => effectiveGasPrice))).toEqual(new Set([null]));
    expect(receipts[hashes.indexOf(deployment)]?.contractAddress).not.toBeNull();
  });

  it("are asked in one request each, heights included, and again only for what an index has not come to", async () => {
    const { hashes, settle } = await open(2);
    const [first, second] = harness.proxies as readonly [RpcProxy, RpcProxy];
    await Promise.all([settle(), harness.chain.heightReached(1)]);
    for (const { requests } of [first, second])
      expect(requests.filter((methods) => methods.includes("eth_getTransactionReceipt"))).toEqual([
        [
          "eth_blockNumber",
          "eth_getBlockByNumber",
          ...hashes.map(() => "eth_getTransactionReceipt"),
          "eth_blockNumber",
        ],
      ]);
    second.rule(
      { methods: ["eth_getTransactionReceipt"] },
      rewrite(() => null),
    );
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });

  it("of which one fails decide nothing; once it is down, the other is held against its block", async () => {
    const { proxy, hashes, settle } = await open(2);
    const down = proxyAt(harness.proxies, 1).rule({}, badGateway);
    lieAboutReceipts(proxy, hashes[2] as Hash, (receipt) => ({ ...receipt, status: "0x0" }));
    for (let times = 0; times < 3; times++) await expect(settle()).rejects.toThrow(ChainUnavailable);
    expect(kindsOf(await settle())).toEqual(["disagree"]);
    down.lift();
  });

  it("of which one is down do not lie deep by the height that it claimed before: the other has to have come so far", async () => {
    const { proxy, settle } = await open(2, 1);
    await harness.node.mine();
    const { number } = (await harness.chain.head("latest")) as Block;
    proxy.rule({}, badGateway);
    for (let times = 0; times < 3; times++) await expect(settle()).rejects.toThrow(ChainUnavailable);
    harness.pin(1, number - 1);
    expect(kindsOf(await settle())).toEqual(["behind"]);
    expect(await harness.chain.heightReached(number)).toBe(number - 1);
    harness.pin(1, null);
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });
});
