/**
 * Tests that receipts from a single endpoint are checked against the hash of their block, on a real EVM behind a proxy.
 */
import { afterEach, describe, expect, it } from "vitest";
import { BlockProver } from "../../../../src/adapters/evm/proof/block-prover.ts";
import { Endpoint } from "../../../../src/adapters/evm/rpc/endpoints.ts";
import { createTransport } from "../../../../src/adapters/evm/rpc/transport.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import type { Hash } from "../../../../src/domain/lane.ts";
import type { Receipt } from "../../../../src/domain/transaction/transaction.ts";
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
  /** Hashes of the block's transactions: one of every type, a deployment with a log, and one that reverted. */
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

describe("proving an honest endpoint's receipts", () => {
  it("succeeds for all receipts of a block", async () => {
    const { proxy, hashes, settle } = await open();
    const verdicts = await settle();
    const receipts = await harness.chain.receipts(hashes);
    expect(verdicts).toEqual(receipts.map((receipt) => ({ kind: "agreed", receipt })));
    await settle();
    await settle(hashes.slice(2));
    const whole = proxy.requests.filter((methods) => methods.includes("eth_getBlockReceipts"));
    expect(whole, "in one request").toEqual([["eth_getBlockByHash", "eth_getBlockReceipts"]]);
  });

  it("succeeds without eth_getBlockReceipts too", async () => {
    const { proxy, settle } = await open();
    proxy.rule({ methods: ["eth_getBlockReceipts"] }, refuseWith("the method does not exist", -32_601));
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });

  // protects [False receipts] src/adapters/evm/proof/block-prover.ts
  it("is undecided if a single receipt request fails", async () => {
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

  // protects [False receipts] src/adapters/evm/proof/block-prover.ts
  it("is undecided and retried if the proving thread died", async () => {
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

  it("is undecided and retried if the endpoint did not answer", async () => {
    const { proxy, settle } = await open();
    const rule = proxy.rule({ methods: ["eth_getBlockByHash"] }, badGateway);
    await expect(settle()).rejects.toThrow(ChainUnavailable);
    rule.lift();
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });

  it("leaves the gas price unknown if the transaction cannot have paid the price", async () => {
    const { proxy, hashes, settle } = await open();
    lieAboutReceipts(proxy, hashes[2] as Hash, (receipt) => ({ ...receipt, effectiveGasPrice: "0x1" }));
    const prices = (await settle()).map((verdict) => verdict.kind === "agreed" && verdict.receipt.effectiveGasPrice);
    expect(prices.map((price) => price === null)).toEqual(hashes.map((_, index) => index === 2));
  });
});

it("costs besides gas are marked as uncertain if only one endpoint reports them", async () => {
  const { proxy, hashes, settle } = await open();
  lieAboutReceipts(proxy, hashes[2] as Hash, (receipt) => ({
    ...receipt,
    blobGasUsed: "0x20000",
    blobGasPrice: "0x1",
  }));
  const unsure = (await settle()).map((verdict) => verdict.kind === "agreed" && verdict.receipt.besideGasUnsure);
  expect(unsure).toEqual(hashes.map((_, index) => (index === 2 ? true : undefined)));
});

describe("the header of an endpoint's block", () => {
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
  ])("contradicts the endpoint if it returns %s", async (_, lie) => {
    const { proxy, deployment, settle } = await open();
    const rule = lieAboutReceipts(proxy, deployment, lie);
    expect(kindsOf(await settle())).toEqual(["disagree"]);
    rule.lift();
    expect(kindsOf(await settle())).toEqual(["agreed"]);
  });

  // protects [False receipts] src/adapters/evm/proof/worker/prove-block.js, src/adapters/evm/proof/block-prover.ts
  it("contradicts the endpoint if two receipts have exchanged transaction hashes", async () => {
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

  // protects [False receipts] src/adapters/evm/proof/worker/prove-block.js, src/adapters/evm/proof/block-prover.ts
  it("contradicts the endpoint if the transactions are in another order", async () => {
    const { proxy, settle } = await open();
    changeBlock(proxy, (block) => ({ ...block, transactions: (block.transactions as readonly Json[]).toReversed() }));
    expect(await settle()).toContainEqual({ kind: "disagree", answers: [expect.stringContaining("transactionsRoot")] });
  });

  it("contradicts the endpoint if a transaction does not match its hash", async () => {
    const { proxy, hashes, settle } = await open();
    const change = (each: Json) => (each.hash === hashes[2] ? { ...each, value: "0x8" } : each);
    changeBlock(proxy, (block) => ({ ...block, transactions: (block.transactions as readonly Json[]).map(change) }));
    expect(kindsOf(await settle())).toEqual(["disagree"]);
  });

  it("contradicts the endpoint if it returns no receipts", async () => {
    const { proxy, settle } = await open();
    proxy.rule(
      { methods: ["eth_getBlockReceipts"] },
      rewrite(() => null),
    );
    expect(kindsOf(await settle())).toEqual(["disagree"]);
  });
});

describe("the receipts of an endpoint", () => {
  it.each<[string, (block: Json) => Json]>([
    ["has a header of its own", (block) => ({ ...block, requestsHash: undefined, l1BlockNumber: "0x1" })],
    [
      "has transactions of its own",
      (block) => ({ ...block, transactions: [{ ...(block.transactions as readonly Json[])[0], type: "0x7e" }] }),
    ],
    // protects [False receipts] src/adapters/evm/proof/worker/prove-block.js, src/adapters/evm/proof/block-prover.ts
  ])("are accepted without a proof if the chain %s", async (_, change) => {
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
  ])(
    // protects [False receipts] src/adapters/evm/proof/block-prover.ts
    "are accepted without a proof if the block contains a chain-specific transaction %s",
    async (_, answer) => {
      const { proxy, hashes, settle } = await open();
      proxy.rule({ methods: ["eth_getBlockReceipts"] }, refuseWith("the method does not exist", -32_601));
      changeBlock(proxy, (block) => {
        const [system, ...others] = block.transactions as readonly Json[];
        return { ...block, transactions: [{ ...system, type: "0x7e" }, ...others] };
      });
      proxy.rule({ methods: ["eth_getTransactionReceipt"], when: ({ params }) => params[0] === hashes[0] }, answer);
      expect(kindsOf(await settle(hashes.slice(1)))).toEqual(["unproven"]);
    },
  );

  it("are accepted without a proof if the endpoint refuses to return the full block", async () => {
    const { proxy, settle } = await open();
    proxy.rule({ methods: ["eth_getBlockByHash"] }, refuseWith("response size exceeded"));
    expect(kindsOf(await settle())).toEqual(["unproven"]);
  });

  it("are accepted without a proof by their block if the block is too large to fetch", async () => {
    const { proxy, settle } = await open();
    changeBlock(proxy, (block) => ({ ...block, transactions: Array.from({ length: 5_001 }, () => ({})) }));
    expect(kindsOf(await settle())).toEqual(["unproven"]);
  });
});

describe("comparing the receipts of two endpoints", () => {
  it.each<[string, (receipt: Json) => Json]>([
    ["other logs", (receipt) => ({ ...receipt, logs: [] })],
    ["no contract", (receipt) => ({ ...receipt, contractAddress: null })],
    // protects [False receipts] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
  ])("is undecided if one endpoint shows %s", async (_, lie) => {
    const { proxy, deployment, settle } = await open(2);
    const rule = lieAboutReceipts(proxy, deployment, lie);
    expect(await settle([deployment])).toMatchObject([{ kind: "disagree", answers: { length: 2 } }]);
    rule.lift();
    expect(kindsOf(await settle([deployment]))).toEqual(["agreed"]);
  });

  it("ignores different contract addresses and prices", async () => {
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

  // protects [False receipts] src/application/stages/6-finality/finality.ts, src/adapters/evm/reads/agree.ts
  it("needs one request to each endpoint", async () => {
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

  it("is undecided while one endpoint fails", async () => {
    const { proxy, hashes, settle } = await open(2);
    const down = proxyAt(harness.proxies, 1).rule({}, badGateway);
    lieAboutReceipts(proxy, hashes[2] as Hash, (receipt) => ({ ...receipt, status: "0x0" }));
    for (let times = 0; times < 3; times++) await expect(settle()).rejects.toThrow(ChainUnavailable);
    expect(kindsOf(await settle())).toEqual(["disagree"]);
    down.lift();
  });

  // protects [False receipts] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
  it("ignores the block height of an endpoint that is down", async () => {
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
