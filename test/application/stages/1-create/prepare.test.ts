import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../../src/application/requests/normalise.ts";
import { prepare, refuseImpossible, type Standing } from "../../../../src/application/stages/1-create/prepare.ts";
import type { PreparedIntent } from "../../../../src/domain/transaction/transaction.ts";
import { createSeededEntropy } from "../../../doubles/seeded-entropy.ts";
import { type ChainBench, type ChainBenchOptions, createChainBench } from "../../../support/chain-bench.ts";
import { SIGNER, TO } from "../../../support/world.ts";

const FIRST: Standing = { behindPending: false, laneKnown: true };
const BEHIND: Standing = { behindPending: true, laneKnown: true };
const NEW_LANE: Standing = { behindPending: false, laneKnown: false };
const GWEI = 1_000_000_000n;
const FEES = { maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" };
const ARBITRUM = 42_161;
const entropy = createSeededEntropy(3);

async function ready(options: ChainBenchOptions = {}): Promise<ChainBench> {
  const bench = createChainBench(options);
  bench.simulated.mine(3);
  await bench.context.follower.advance();
  return bench;
}

function prepareWith(bench: ChainBench, payload: Record<string, unknown>, standing = FIRST): Promise<PreparedIntent> {
  const ports = { codec: createCodec(), entropy, chainIds: [bench.chain.chainId] };
  return prepare(bench.context, normalise(ports, { signer: SIGNER, payload: { to: TO, ...payload } }), standing);
}

function rejection(reason: string, more: Record<string, unknown> = {}): unknown {
  return expect.objectContaining({
    code: "SUBMISSION_REJECTED",
    status: 422,
    extras: expect.objectContaining({ reason, ...more }),
  });
}

describe("the gas of a create", () => {
  it("is estimated if not given: exact for a transfer, plus a fifth for a call", async () => {
    const bench = await ready();
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(21_000n);
    bench.simulated.burnGasAt(TO, 0n);
    const call = await prepareWith(bench, { data: "0xaabbccdd" });
    expect(call.gas).toBe((21_064n * 6n) / 5n);
  });

  it("is used unchanged if given", async () => {
    expect((await prepareWith(await ready(), { gas: 50_000 })).gas).toBe(50_000n);
  });

  // protects [Holes] src/application/stages/1-create/prepare.ts
  it("is refused without an RPC request if it is below the minimum of every chain", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    for (const standing of [FIRST, BEHIND, NEW_LANE]) {
      await expect(prepareWith(bench, { gas: 20_999, ...FEES }, standing)).rejects.toEqual(rejection("GAS_TOO_LOW"));
    }
    await expect(prepareWith(bench, { gas: 21_015, data: "0x01", ...FEES })).rejects.toEqual(rejection("GAS_TOO_LOW"));
  });

  it("is refused too if the caller signed the transaction itself", async () => {
    const { context } = await ready();
    const payload = { to: TO, data: "0x", value: 0n, gasPrice: 20n * GWEI } as const;
    const signed = (gas: bigint) => () => refuseImpossible(context, { ...payload, gas });
    expect(signed(20_999n)).toThrow("is below");
    expect(signed(21_000n)).not.toThrow();
  });

  // protects [Holes] src/application/stages/1-create/prepare.ts
  it("is refused above the block gas limit, once a block has been seen", async () => {
    const bench = await ready();
    for (const standing of [FIRST, BEHIND, NEW_LANE]) {
      await expect(prepareWith(bench, { gas: 30_000_001, ...FEES }, standing)).rejects.toEqual(
        rejection("GAS_OVER_BLOCK"),
      );
    }
    const blind = createChainBench();
    blind.faults.inject({ kind: "unavailable" });
    expect((await prepareWith(blind, { gas: 30_000_001, ...FEES })).gas).toBe(30_000_001n);
  });

  it("is refused if the estimate exceeds the block gas limit", async () => {
    const bench = await ready();
    bench.simulated.setBlockGasLimit(21_000n);
    await expect(prepareWith(bench, { data: "0x01" })).rejects.toEqual(rejection("GAS_OVER_BLOCK"));
  });

  it("is refused if even one endpoint's estimate exceeds the block gas limit", async () => {
    const bench = await ready();
    bench.faults.lieAboutGas(() => 30_000_001n);
    await expect(prepareWith(bench, { data: "0x01" })).rejects.toEqual(rejection("GAS_OVER_BLOCK"));
  });
});

describe("the gas limit of a create", () => {
  const CAP = 16_777_216n;
  const capped = () => ready({ settings: { maxTransactionGas: CAP } });

  it.each([
    ["by its settings", () => capped()],
    ["by its id", () => ready({ chain: { chainId: 1 } })],
    // protects [Holes] src/application/chain/chain-context.ts, src/domain/fees/gas.ts
  ])("includes a margin only up to the chain's gas cap per transaction: %s", async (_, start) => {
    const bench = await start();
    bench.simulated.burnGasAt(TO, 14_191_170n - 21_064n);
    expect((await prepareWith(bench, { data: "0xaabbccdd" })).gas).toBe(CAP);
  });

  // protects [Holes] src/application/chain/gas-needed.ts, src/application/stages/1-create/prepare.ts
  it("is refused if the estimate exceeds the chain's gas cap per transaction", async () => {
    const bench = await capped();
    bench.simulated.burnGasAt(TO, CAP);
    const failure = await prepareWith(bench, { data: "0xaabbccdd" }).catch((error: unknown) => error);
    expect(failure).toEqual(rejection("GAS_OVER_BLOCK"));
    expect(failure).toHaveProperty("message", expect.stringContaining("this chain for one transaction, 16777216"));
  });

  // protects [Holes] src/application/chain/gas-needed.ts, src/application/stages/1-create/prepare.ts
  it("is refused without an RPC request if it exceeds the chain's gas cap per transaction", async () => {
    const bench = await capped();
    bench.faults.inject({ kind: "unavailable" });
    for (const standing of [FIRST, BEHIND, NEW_LANE]) {
      await expect(prepareWith(bench, { gas: Number(CAP) + 1, ...FEES }, standing)).rejects.toEqual(
        rejection("GAS_OVER_BLOCK"),
      );
    }
    expect((await prepareWith(bench, { gas: Number(CAP), ...FEES }, BEHIND)).gas).toBe(CAP);
  });

  // protects [Holes] src/domain/fees/gas.ts
  it("includes the whole margin on a chain without a gas cap per transaction", async () => {
    const bench = await ready();
    bench.simulated.burnGasAt(TO, 14_191_170n - 21_064n);
    expect((await prepareWith(bench, { data: "0xaabbccdd" })).gas).toBe(17_029_404n);
  });
});

describe("a high gas estimate of one endpoint", () => {
  const LIE = 14_191_170n;

  it.each([1, 2] as const)("is ignored for a plain transfer, with %i endpoint(s)", async (endpoints) => {
    const bench = await ready({ endpoints });
    bench.faults.lieAboutGas(() => LIE);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(21_000n);
  });

  it("is not ignored for a transfer to a contract", async () => {
    const bench = await ready();
    bench.simulated.burnGasAt(TO, 24_000n);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(54_000n);
  });

  it("is not ignored for a transfer on a chain that charges more than 21,000 gas", async () => {
    const bench = await ready({ chain: { chainId: ARBITRUM } });
    bench.faults.lieAboutGas((honest) => honest + 10_000n);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(37_200n);
  });

  /** A cost ceiling that a correct gas estimate stays below and the false estimate exceeds. */
  const bounded = { endpoints: 2, chain: { chainId: ARBITRUM }, settings: { maxGasCostWei: 10n ** 15n } } as const;

  it("is not checked with a second endpoint if the cost is within maxGasCostWei", async () => {
    const bench = await ready({ ...bounded, settings: {} });
    bench.faults.lieAboutGas(() => LIE);
    bench.elsewhere.inject({ kind: "unavailable" });
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(17_029_404n);
  });

  // protects [Holes] src/application/chain/gas-needed.ts
  it("makes the create fail with 503 if a second endpoint contradicts", async () => {
    const bench = await ready(bounded);
    bench.faults.lieAboutGas(() => LIE);
    const failure = await prepareWith(bench, { value: 1 }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
    expect(failure).toHaveProperty("message", expect.stringMatching(/14191170 gas .* another 21000; set gas/));
    expect((await prepareWith(bench, { value: 1, gas: 21_000, ...FEES })).gas, "with gas").toBe(21_000n);
  });

  // protects [Holes] src/application/chain/gas-needed.ts, src/adapters/evm/chain.ts
  it("cannot be confirmed by the endpoint that reported it", async () => {
    const bench = await ready(bounded);
    bench.elsewhere.lieAboutGas(() => LIE);
    const { simulate } = bench.chain;
    Object.assign(bench.chain, { simulate: async () => ({ outcome: "ok", gas: LIE }) });
    await expect(prepareWith(bench, { value: 1 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    Object.assign(bench.chain, { simulate });
  });

  // protects [Holes] src/application/chain/gas-needed.ts, src/adapters/evm/chain.ts
  it("that is correct makes the create fail with 503 while the second endpoint is down", async () => {
    const bench = await ready(bounded);
    bench.simulated.burnGasAt(TO, 400_000n);
    bench.elsewhere.inject({ kind: "unavailable" });
    await expect(prepareWith(bench, { value: 1 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("is accepted if a second endpoint returns the same estimate", async () => {
    const bench = await ready(bounded);
    bench.simulated.burnGasAt(TO, 400_000n);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe((421_000n * 6n) / 5n);
  });

  it("is not checked with a second endpoint if the payload justifies the estimate", async () => {
    const bench = await ready(bounded);
    bench.elsewhere.inject({ kind: "unavailable" });
    bench.simulated.burnGasAt(TO, 189_000n);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(252_000n);
  });

  it("that is false makes the create fail with 503 while the second endpoint is down", async () => {
    const bench = await ready(bounded);
    bench.faults.lieAboutGas(() => LIE);
    bench.elsewhere.inject({ kind: "unavailable" });
    await expect(prepareWith(bench, { value: 1 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("a create whose call would revert", () => {
  const revert = (message: string): `0x${string}` => {
    const text = Buffer.from(message).toString("hex");
    const words = [(32).toString(16).padStart(64, "0"), message.length.toString(16).padStart(64, "0")];
    return `0x08c379a0${words.join("")}${text.padEnd(64, "0")}`;
  };

  it("is refused with the decoded reason", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, revert("too poor"));
    const failure = await prepareWith(bench, { data: "0x01" }).catch((error: unknown) => error);
    expect(failure).toEqual(rejection("REVERT", { revert: expect.objectContaining({ message: "too poor" }) }));
    expect(failure).toHaveProperty("message", "the call would revert: too poor");
    expect(failure).not.toHaveProperty("extras.dependsOnPending");
  });

  it("is refused with `the call would revert` if there is no reason", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    await expect(prepareWith(bench, { gas: 50_000 })).rejects.toThrow(/^the call would revert$/);
  });

  it("is refused behind pending transactions if no gas is given", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    await expect(prepareWith(bench, {}, BEHIND)).rejects.toEqual(rejection("REVERT", { dependsOnPending: true }));
  });

  it("is accepted behind pending transactions if gas is given", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    expect((await prepareWith(bench, { gas: 50_000 }, BEHIND)).gas).toBe(50_000n);
    expect((await prepareWith(bench, { gas: 50_000, ...FEES }, BEHIND)).gas).toBe(50_000n);
  });
});

describe("the fee market of a create behind pending transactions", () => {
  // protects [Short of time] src/application/chain/fee-markets.ts
  it("may be two polls old, so that no create waits while a newer one is requested", async () => {
    const bench = await ready();
    const { pollIntervalMs } = bench.context.settings;
    await prepareWith(bench, { gas: 50_000 }, BEHIND);
    bench.context.forget();
    bench.faults.inject({ kind: "unavailable" });
    await bench.clock.advance(2 * pollIntervalMs - 1);
    expect((await prepareWith(bench, { gas: 50_000 }, BEHIND)).gas).toBe(50_000n);
    await bench.clock.advance(1);
    await expect(prepareWith(bench, { gas: 50_000 }, BEHIND)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("is requested anew once it is a poll old", async () => {
    const bench = await ready();
    await prepareWith(bench, { gas: 50_000 }, BEHIND);
    await bench.clock.advance(bench.context.settings.pollIntervalMs);
    const before = bench.context.knownMarket;
    await prepareWith(bench, { gas: 50_000 }, BEHIND);
    await bench.context.feeMarket();
    expect(bench.context.knownMarket).not.toBe(before);
  });
});

describe("the signer's balance in a create", () => {
  // protects [Holes] src/application/stages/1-create/prepare.ts, src/domain/transaction/fees.ts
  it("must cover value plus gas at the fee cap, to the wei", async () => {
    const bench = await ready();
    const needed = 5n + 21_000n * 20_000_000_000n;
    bench.simulated.setBalance(SIGNER, needed - 1n);
    await expect(prepareWith(bench, { value: 5, gas: 21_000, ...FEES })).rejects.toEqual(
      rejection("INSUFFICIENT_FUNDS"),
    );
    bench.simulated.setBalance(SIGNER, needed);
    bench.context.forget();
    expect((await prepareWith(bench, { value: 5, gas: 21_000, ...FEES })).gas).toBe(21_000n);
  });

  it("must cover the gas at the price that would be signed", async () => {
    const bench = await ready();
    bench.simulated.setBalance(SIGNER, 21_000n * 3_000_000_000n);
    expect((await prepareWith(bench, { gas: 21_000 })).gas).toBe(21_000n);
    bench.context.forget();
    bench.simulated.setBalance(SIGNER, 21_000n * 3_000_000_000n - 1n);
    await expect(prepareWith(bench, { gas: 21_000 })).rejects.toEqual(rejection("INSUFFICIENT_FUNDS"));
  });

  it("must cover the value itself", async () => {
    const bench = await ready();
    bench.simulated.setBalance(SIGNER, 10n);
    await expect(prepareWith(bench, { value: 11 })).rejects.toEqual(rejection("INSUFFICIENT_FUNDS"));
  });

  it("may be too low behind pending transactions if gas is given", async () => {
    const bench = await ready();
    bench.simulated.setBalance(SIGNER, 0n);
    expect((await prepareWith(bench, { gas: 21_000, ...FEES }, BEHIND)).gas).toBe(21_000n);
    await expect(prepareWith(bench, { value: 1 }, BEHIND)).rejects.toEqual(
      rejection("INSUFFICIENT_FUNDS", { dependsOnPending: true }),
    );
  });
});

describe("a create whose fee cap is below the base fee", () => {
  // protects [Holes] src/application/stages/1-create/prepare.ts, src/domain/transaction/fees.ts
  // protects [Times and holds] src/application/stages/1-create/prepare.ts
  it("is refused if the cap is below half of the base fee", async () => {
    const bench = await ready();
    bench.simulated.setBaseFee(40_000_000_001n);
    bench.simulated.mine();
    await bench.context.follower.advance();
    for (const fees of [FEES, { gasPrice: "20000000000" }]) {
      const failure = await prepareWith(bench, { gas: 21_000, ...fees }).catch((error: unknown) => error);
      expect(failure).toEqual(rejection("FEE_TOO_LOW", { baseFeePerGas: "40000000001" }));
      expect(failure).toHaveProperty("message", expect.stringContaining("20000000000 wei is less than half"));
    }
    await expect(prepareWith(bench, { ...FEES })).rejects.toEqual(
      rejection("FEE_TOO_LOW", { baseFeePerGas: "40000000001" }),
    );
  });

  it("is accepted if two endpoints agree on a lower base fee", async () => {
    const bench = await ready();
    bench.simulated.setBaseFee(40_000_000_001n);
    bench.simulated.mine();
    await bench.context.follower.advance();
    bench.chain.feeMarket = async () => ({ baseFees: [GWEI], priorityFees: [], gasPrice: GWEI, agreed: true });
    await bench.context.feeMarket();
    expect((await prepareWith(bench, { gas: 21_000, ...FEES })).gas).toBe(21_000n);
  });

  // protects [Times and holds] src/application/stages/1-create/prepare.ts
  it("is refused behind pending transactions too", async () => {
    const bench = await ready();
    bench.simulated.setBaseFee(40_000_000_001n);
    bench.simulated.mine();
    await bench.context.follower.advance();
    const behind = () => prepareWith(bench, { gas: 21_000, ...FEES }, BEHIND);
    await expect(behind()).rejects.toEqual(rejection("FEE_TOO_LOW", { baseFeePerGas: "40000000001" }));
    bench.context.reachable = false;
    expect((await behind()).gas).toBe(21_000n);
  });

  it("is accepted if the cap is at least half of the base fee", async () => {
    const bench = await ready();
    bench.simulated.setBaseFee(40_000_000_000n);
    bench.simulated.mine();
    await bench.context.follower.advance();
    expect((await prepareWith(bench, { gas: 21_000, ...FEES })).gas).toBe(21_000n);
  });
});

describe("an unreachable chain while a create is prepared", () => {
  it.each([
    ["on a known lane", FIRST],
    ["after pending transactions", BEHIND],
  ])("does not stop creates with given gas and fees %s", async (_, standing) => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    expect((await prepareWith(bench, { gas: 21_000, ...FEES }, standing)).gas).toBe(21_000n);
    expect((await prepareWith(bench, { gas: 21_000, gasPrice: FEES.maxFeePerGas }, standing)).gas).toBe(21_000n);
  });

  it.each([
    ["without gas", FEES, FIRST],
    ["without fees", { gas: 21_000 }, FIRST],
    ["with half the fees", { gas: 21_000, maxFeePerGas: 1 }, FIRST],
    ["without fees, after pending transactions", { gas: 21_000 }, BEHIND],
    ["on a new lane", { gas: 21_000, ...FEES }, NEW_LANE],
  ])("makes a create %s fail with 503", async (_, payload, standing) => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    await expect(prepareWith(bench, payload, standing)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      extras: { retryAfterSeconds: 1 },
    });
  });

  it("causes an error that requests gas and fees if they are missing", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    await expect(prepareWith(bench, { gas: 21_000, ...FEES }, NEW_LANE)).rejects.toThrow(/nonce is not known/);
    await expect(prepareWith(bench, {}, NEW_LANE)).rejects.toThrow(/set gas and fees/);
  });

  it.each(["eth_estimateGas", "eth_feeHistory", "eth_getBalance"])(
    "is assumed if only the RPC method %s fails",
    async (method) => {
      const bench = await ready();
      bench.faults.inject({ kind: "unavailable" }, { method });
      await expect(prepareWith(bench, { value: 1 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    },
  );

  it("is tried again by the next create, not remembered as unreachable", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" }, { times: 2 });
    await prepareWith(bench, { value: 1 }).catch(() => undefined);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(21_000n);
  });

  it("is not assumed if an internal error occurs", async () => {
    const bench = await ready();
    const intent = prepareWith({ ...bench, context: Object.assign(Object.create(bench.context), brokenMarket()) }, {});
    await expect(intent).rejects.toThrow("a mistake of ours");
  });
});

function brokenMarket(): { readonly marketFor: () => Promise<never> } {
  return { marketFor: () => Promise.reject(new TypeError("a mistake of ours")) };
}
