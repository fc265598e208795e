import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../../src/application/requests/normalise.ts";
import { prepare, type Standing } from "../../../../src/application/stages/1-create/prepare.ts";
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

describe("gas", () => {
  it("is estimated where it is not given: exactly for a transfer, a fifth on top for a call", async () => {
    const bench = await ready();
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(21_000n);
    bench.simulated.burnGasAt(TO, 0n);
    const call = await prepareWith(bench, { data: "0xaabbccdd" });
    expect(call.gas).toBe((21_064n * 6n) / 5n);
  });

  it("that is given is taken, and only checked", async () => {
    expect((await prepareWith(await ready(), { gas: 50_000 })).gas).toBe(50_000n);
  });

  // protects [Holes] src/application/stages/1-create/prepare.ts
  it("below what any chain takes is refused without asking it", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    for (const standing of [FIRST, BEHIND, NEW_LANE]) {
      await expect(prepareWith(bench, { gas: 20_999, ...FEES }, standing)).rejects.toEqual(rejection("GAS_TOO_LOW"));
    }
    await expect(prepareWith(bench, { gas: 21_015, data: "0x01", ...FEES })).rejects.toEqual(rejection("GAS_TOO_LOW"));
  });

  // protects [Holes] src/application/stages/1-create/prepare.ts
  it("above the block's limit is refused, once a block has been seen", async () => {
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

  it("whose estimate is over the block's limit is refused", async () => {
    const bench = await ready();
    bench.simulated.setBlockGasLimit(21_000n);
    await expect(prepareWith(bench, { data: "0x01" })).rejects.toEqual(rejection("GAS_OVER_BLOCK"));
  });

  it("whose estimate is over the block's limit by one endpoint's word alone is refused, too", async () => {
    const bench = await ready();
    bench.faults.lieAboutGas(() => 30_000_001n);
    await expect(prepareWith(bench, { data: "0x01" })).rejects.toEqual(rejection("GAS_OVER_BLOCK"));
  });
});

describe("gas on a chain that caps a transaction", () => {
  const CAP = 16_777_216n;
  const capped = () => ready({ settings: { maxTransactionGas: CAP } });

  it.each([
    ["by its settings", () => capped()],
    ["by its id", () => ready({ chain: { chainId: 1 } })],
    // protects [Holes] src/application/chain/chain-context.ts, src/domain/fees/gas.ts
  ])("(%s): the margin ends at the cap", async (_, start) => {
    const bench = await start();
    bench.simulated.burnGasAt(TO, 14_191_170n - 21_064n);
    expect((await prepareWith(bench, { data: "0xaabbccdd" })).gas).toBe(CAP);
  });

  // protects [Holes] src/application/chain/gas-needed.ts, src/application/stages/1-create/prepare.ts
  it("is refused where the estimate itself is above the cap, and says whose limit that is", async () => {
    const bench = await capped();
    bench.simulated.burnGasAt(TO, CAP);
    const failure = await prepareWith(bench, { data: "0xaabbccdd" }).catch((error: unknown) => error);
    expect(failure).toEqual(rejection("GAS_OVER_BLOCK"));
    expect(failure).toHaveProperty("message", expect.stringContaining("this chain for one transaction, 16777216"));
  });

  // protects [Holes] src/application/chain/gas-needed.ts, src/application/stages/1-create/prepare.ts
  it("is refused where the caller brings more than the cap, without asking the chain", async () => {
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
  it("has its whole margin on every other chain", async () => {
    const bench = await ready();
    bench.simulated.burnGasAt(TO, 14_191_170n - 21_064n);
    expect((await prepareWith(bench, { data: "0xaabbccdd" })).gas).toBe(17_029_404n);
  });
});

describe("an estimate that one endpoint lies about", () => {
  const LIE = 14_191_170n;

  it.each([1, 2] as const)("says nothing about a plain transfer, with %i endpoint(s)", async (endpoints) => {
    const bench = await ready({ endpoints });
    bench.faults.lieAboutGas(() => LIE);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(21_000n);
  });

  it("counts for a transfer to a contract: its code runs", async () => {
    const bench = await ready();
    bench.simulated.burnGasAt(TO, 24_000n);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(54_000n);
  });

  it("counts for a transfer on a chain that charges more than 21,000", async () => {
    const bench = await ready({ chain: { chainId: ARBITRUM } });
    bench.faults.lieAboutGas((honest) => honest + 10_000n);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(37_200n);
  });

  /** Gas is cheap enough for this ceiling in proportion, and too expensive otherwise. */
  const bounded = { endpoints: 2, chain: { chainId: ARBITRUM }, settings: { maxGasCostWei: 10n ** 15n } } as const;

  it("is not worth a second question where it costs no more than a transaction may", async () => {
    const bench = await ready({ ...bounded, settings: {} });
    bench.faults.lieAboutGas(() => LIE);
    bench.elsewhere.inject({ kind: "unavailable" });
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(17_029_404n);
  });

  // protects [Holes] src/application/chain/gas-needed.ts
  it("is not believed where a second endpoint contradicts it", async () => {
    const bench = await ready(bounded);
    bench.faults.lieAboutGas(() => LIE);
    const failure = await prepareWith(bench, { value: 1 }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
    expect(failure).toHaveProperty("message", expect.stringMatching(/14191170 gas .* another 21000; bring gas/));
    expect((await prepareWith(bench, { value: 1, gas: 21_000, ...FEES })).gas, "with gas").toBe(21_000n);
  });

  // protects [Holes] src/application/chain/gas-needed.ts, src/adapters/evm/chain.ts
  it("is not confirmed by the liar itself, where the one that was asked first fails now and then", async () => {
    const bench = await ready(bounded);
    bench.elsewhere.lieAboutGas(() => LIE);
    const { simulate } = bench.chain;
    Object.assign(bench.chain, { simulate: async () => ({ outcome: "ok", gas: LIE }) });
    await expect(prepareWith(bench, { value: 1 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    Object.assign(bench.chain, { simulate });
  });

  // protects [Holes] src/application/chain/gas-needed.ts, src/adapters/evm/chain.ts
  it("is not believed while the second endpoint is silent", async () => {
    const bench = await ready(bounded);
    bench.simulated.burnGasAt(TO, 400_000n);
    bench.elsewhere.inject({ kind: "unavailable" });
    await expect(prepareWith(bench, { value: 1 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("is the truth where a second endpoint says the same", async () => {
    const bench = await ready(bounded);
    bench.simulated.burnGasAt(TO, 400_000n);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe((421_000n * 6n) / 5n);
  });

  it("is not worth a second question where it is in proportion to the payload", async () => {
    const bench = await ready(bounded);
    bench.elsewhere.inject({ kind: "unavailable" });
    bench.simulated.burnGasAt(TO, 189_000n);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(252_000n);
  });

  it("waits for the second endpoint where that is silent", async () => {
    const bench = await ready(bounded);
    bench.faults.lieAboutGas(() => LIE);
    bench.elsewhere.inject({ kind: "unavailable" });
    await expect(prepareWith(bench, { value: 1 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("a call that would revert", () => {
  const revert = (message: string): `0x${string}` => {
    const text = Buffer.from(message).toString("hex");
    const words = [(32).toString(16).padStart(64, "0"), message.length.toString(16).padStart(64, "0")];
    return `0x08c379a0${words.join("")}${text.padEnd(64, "0")}`;
  };

  it("is refused with the decoded reason, and nothing depends on pending ones", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, revert("too poor"));
    const failure = await prepareWith(bench, { data: "0x01" }).catch((error: unknown) => error);
    expect(failure).toEqual(rejection("REVERT", { revert: expect.objectContaining({ message: "too poor" }) }));
    expect(failure).toHaveProperty("message", "the call would revert: too poor");
    expect(failure).not.toHaveProperty("extras.dependsOnPending");
  });

  it("without a reason says only that", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    await expect(prepareWith(bench, { gas: 50_000 })).rejects.toThrow(/^the call would revert$/);
  });

  it("behind pending ones is refused where gas must be estimated, and says why that may change", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    await expect(prepareWith(bench, {}, BEHIND)).rejects.toEqual(rejection("REVERT", { dependsOnPending: true }));
  });

  it("behind pending ones is accepted where gas is given, with fees or without", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    expect((await prepareWith(bench, { gas: 50_000 }, BEHIND)).gas).toBe(50_000n);
    expect((await prepareWith(bench, { gas: 50_000, ...FEES }, BEHIND)).gas).toBe(50_000n);
  });
});

describe("funds", () => {
  // protects [Holes] src/application/stages/1-create/prepare.ts, src/domain/transaction/fees.ts
  it("must cover value and gas at the fee cap, to the wei", async () => {
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

  it("are judged at the price that would be signed", async () => {
    const bench = await ready();
    bench.simulated.setBalance(SIGNER, 21_000n * 3_000_000_000n);
    expect((await prepareWith(bench, { gas: 21_000 })).gas).toBe(21_000n);
    bench.context.forget();
    bench.simulated.setBalance(SIGNER, 21_000n * 3_000_000_000n - 1n);
    await expect(prepareWith(bench, { gas: 21_000 })).rejects.toEqual(rejection("INSUFFICIENT_FUNDS"));
  });

  it("that do not cover the value itself are refused", async () => {
    const bench = await ready();
    bench.simulated.setBalance(SIGNER, 10n);
    await expect(prepareWith(bench, { value: 11 })).rejects.toEqual(rejection("INSUFFICIENT_FUNDS"));
  });

  it("behind pending ones may come: accepted with gas, refused without, saying so", async () => {
    const bench = await ready();
    bench.simulated.setBalance(SIGNER, 0n);
    expect((await prepareWith(bench, { gas: 21_000, ...FEES }, BEHIND)).gas).toBe(21_000n);
    await expect(prepareWith(bench, { value: 1 }, BEHIND)).rejects.toEqual(
      rejection("INSUFFICIENT_FUNDS", { dependsOnPending: true }),
    );
  });
});

describe("a fee cap that is under the base fee", () => {
  // protects [Holes] src/application/stages/1-create/prepare.ts, src/domain/transaction/fees.ts
  // protects [Times and holds] src/application/stages/1-create/prepare.ts
  it("by so much that no node would keep it is refused, and says by how much", async () => {
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

  it("is taken where the base fee is one endpoint's word, and two agreed on a lower one", async () => {
    const bench = await ready();
    bench.simulated.setBaseFee(40_000_000_001n);
    bench.simulated.mine();
    await bench.context.follower.advance();
    bench.chain.feeMarket = async () => ({ baseFees: [GWEI], priorityFees: [], gasPrice: GWEI, agreed: true });
    await bench.context.feeMarket();
    expect((await prepareWith(bench, { gas: 21_000, ...FEES })).gas).toBe(21_000n);
  });

  // protects [Times and holds] src/application/stages/1-create/prepare.ts
  it("is refused behind pending ones too, and taken where the base fee is of a chain that is silent now", async () => {
    const bench = await ready();
    bench.simulated.setBaseFee(40_000_000_001n);
    bench.simulated.mine();
    await bench.context.follower.advance();
    const behind = () => prepareWith(bench, { gas: 21_000, ...FEES }, BEHIND);
    await expect(behind()).rejects.toEqual(rejection("FEE_TOO_LOW", { baseFeePerGas: "40000000001" }));
    bench.context.reachable = false;
    expect((await behind()).gas).toBe(21_000n);
  });

  it("by less is accepted: base fees fall, and it is signed again for more", async () => {
    const bench = await ready();
    bench.simulated.setBaseFee(40_000_000_000n);
    bench.simulated.mine();
    await bench.context.follower.advance();
    expect((await prepareWith(bench, { gas: 21_000, ...FEES })).gas).toBe(21_000n);
  });
});

describe("a chain that is away", () => {
  it.each([
    ["on a known lane", FIRST],
    ["behind pending ones", BEHIND],
  ])("lets in what brings gas and fees %s", async (_, standing) => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    expect((await prepareWith(bench, { gas: 21_000, ...FEES }, standing)).gas).toBe(21_000n);
    expect((await prepareWith(bench, { gas: 21_000, gasPrice: FEES.maxFeePerGas }, standing)).gas).toBe(21_000n);
  });

  it.each([
    ["without gas", FEES, FIRST],
    ["without fees", { gas: 21_000 }, FIRST],
    ["with half the fees", { gas: 21_000, maxFeePerGas: 1 }, FIRST],
    ["without fees, behind pending ones", { gas: 21_000 }, BEHIND],
    ["on a new lane", { gas: 21_000, ...FEES }, NEW_LANE],
  ])("is 503 %s", async (_, payload, standing) => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    await expect(prepareWith(bench, payload, standing)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      extras: { retryAfterSeconds: 1 },
    });
  });

  it("does not ask for gas and fees where they were brought", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    await expect(prepareWith(bench, { gas: 21_000, ...FEES }, NEW_LANE)).rejects.toThrow(/nonce is not known/);
    await expect(prepareWith(bench, {}, NEW_LANE)).rejects.toThrow(/bring gas and fees/);
  });

  it.each(["eth_estimateGas", "eth_feeHistory", "eth_getBalance"])(
    "for %s alone decides nothing either",
    async (method) => {
      const bench = await ready();
      bench.faults.inject({ kind: "unavailable" }, { method });
      await expect(prepareWith(bench, { value: 1 })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    },
  );

  it("is asked again after a failure, not remembered as down", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" }, { times: 2 });
    await prepareWith(bench, { value: 1 }).catch(() => undefined);
    expect((await prepareWith(bench, { value: 1 })).gas).toBe(21_000n);
  });

  it("any other failure is not the chain's, and is not hidden", async () => {
    const bench = await ready();
    const intent = prepareWith({ ...bench, context: Object.assign(Object.create(bench.context), brokenMarket()) }, {});
    await expect(intent).rejects.toThrow("a mistake of ours");
  });
});

function brokenMarket(): { readonly marketFor: () => Promise<never> } {
  return { marketFor: () => Promise.reject(new TypeError("a mistake of ours")) };
}
