import { describe, expect, it } from "vitest";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { blockJson, type EvmBench, useEvmBench } from "../../support/evm-bench.ts";
import { Refusal } from "../../support/faulty-rpc.ts";

const start = useEvmBench();

async function bench(): Promise<EvmBench> {
  const started = await start();
  started.server.on("eth_gasPrice", () => "0x77359400");
  started.server.on("eth_feeHistory", () => history());
  return started;
}

const history = (overrides: Record<string, unknown> = {}) => ({
  oldestBlock: "0x5",
  baseFeePerGas: ["0xa", "0xb", "0xc", "0xd"],
  gasUsedRatio: [0.5, 0, 1],
  reward: [["0x1"], ["0x0"], ["0x3"]],
  ...overrides,
});
const refuse = (code: number, message: string) => () => {
  throw new Refusal(code, message);
};

describe("the fee market read from an endpoint", () => {
  it("needs one round trip", async () => {
    const { server, chain } = await bench();
    await chain.head("latest");
    const before = server.requests.length;
    expect(await chain.feeMarket()).toEqual({
      baseFees: [10n, 11n, 12n, 13n],
      priorityFees: [1n, 3n],
      gasPrice: 2_000_000_000n,
    });
    expect(server.requests.length - before).toBe(1);
    expect(server.calls("eth_feeHistory")[0]?.params).toEqual(["0x64", "latest", [25]]);
  });

  it("contains only the requested number of newest values", async () => {
    const { server, chain } = await bench();
    const many = <T>(item: (index: number) => T) => Array.from({ length: 5_000 }, (_, index) => item(index));
    const endless = {
      baseFeePerGas: many((index) => `0x${index.toString(16)}`),
      gasUsedRatio: many(() => 1),
      reward: many((index) => [`0x${index.toString(16)}`, "0x0", "0x0"]),
    };
    server.on("eth_feeHistory", () => history(endless));
    const { baseFees, priorityFees } = await chain.feeMarket();
    expect([baseFees.length, baseFees.at(-1)]).toEqual([101, 4_999n]);
    expect([priorityFees.length, priorityFees.at(-1)]).toEqual([100, 4_999n]);
  });

  it("has no base fees on a chain without EIP-1559", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByNumber", () => blockJson(7, { baseFeePerGas: undefined }));
    server.on("eth_feeHistory", () => history({ baseFeePerGas: ["0x0", "0x0"] }));
    expect(await chain.feeMarket()).toEqual({ baseFees: [], priorityFees: [], gasPrice: 2_000_000_000n });
    server.on("eth_gasPrice", refuse(-32601, "no"));
    await expect(chain.feeMarket()).rejects.toThrow(ChainUnavailable);
  });

  it("keeps a base fee of zero if the chain has a zero base fee", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByNumber", () => blockJson(7, { baseFeePerGas: "0x0" }));
    server.on("eth_feeHistory", () => history({ baseFeePerGas: ["0x0", "0x0"], reward: null }));
    expect(await chain.feeMarket()).toMatchObject({ baseFees: [0n, 0n], priorityFees: [] });
  });

  it("uses the newest block's base fee if the node lacks eth_feeHistory", async () => {
    const { server, chain } = await bench();
    server.on("eth_feeHistory", refuse(-32601, "no history"));
    server.on("eth_gasPrice", refuse(-32601, "no price"));
    expect(await chain.feeMarket()).toEqual({ baseFees: [10n ** 9n], priorityFees: [], gasPrice: 1_100_000_000n });
  });

  it.each([
    ["base fees that are no list", history({ baseFeePerGas: "0x1" })],
    ["base fees that are no quantities", history({ baseFeePerGas: ["0x1", "lots"] })],
    ["tips that are no quantities", history({ reward: [["free"], [], []] })],
    ["tips that are no lists", history({ reward: ["0x1", "0x1", "0x1"] })],
    ["no ratios", history({ gasUsedRatio: null })],
    ["null", null],
  ])("is refused as a bad answer if eth_feeHistory returns %s", async (_, value) => {
    const { server, chain } = await bench();
    server.on("eth_feeHistory", () => value);
    await expect(chain.feeMarket()).rejects.toThrow(ChainUnavailable);
  });

  it.each([null, "0x", "cheap", 7])("is refused as a bad answer if eth_gasPrice returns %j", async (value) => {
    const { server, chain } = await bench();
    server.on("eth_gasPrice", () => value);
    await expect(chain.feeMarket()).rejects.toThrow(ChainUnavailable);
  });
});
