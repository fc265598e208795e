import { afterEach } from "vitest";
import { createEvmChain, type EvmChainOptions } from "../../src/adapters/evm/chain.ts";
import type { Hash } from "../../src/domain/lane.ts";
import type { Block, Chain } from "../../src/ports/chain.ts";
import { createManualClock, type ManualClock } from "../doubles/manual-clock.ts";
import { createSeededEntropy } from "../doubles/seeded-entropy.ts";
import { type FaultyRpc, startFaultyRpc } from "./faulty-rpc.ts";
import { type RecordedTelemetry, recordTelemetry } from "./recorded-telemetry.ts";

/** The real chain adapter on scripted endpoints and a manual clock. */
export interface EvmBench {
  readonly server: FaultyRpc;
  readonly other: FaultyRpc;
  readonly chain: Chain;
  readonly clock: ManualClock;
  readonly telemetry: RecordedTelemetry;
  close(): Promise<void>;
}

export interface EvmBenchOptions extends Partial<EvmChainOptions> {
  /** Number of endpoints in the adapter's configuration. If 1, the endpoint `other` runs but is not configured. */
  readonly endpoints?: 1 | 2;
}

/** Creates benches that are closed after each test of the calling file. */
export function useEvmBench(): (options?: EvmBenchOptions) => Promise<EvmBench> {
  const started: EvmBench[] = [];
  afterEach(async () => {
    for (const bench of started.splice(0)) await bench.close();
  });
  return async (options) => {
    const bench = await startEvmBench(options);
    started.push(bench);
    return bench;
  };
}

async function startEvmBench({ endpoints = 1, ...options }: EvmBenchOptions = {}): Promise<EvmBench> {
  const [server, other] = [await startFaultyRpc(), await startFaultyRpc()];
  for (const each of [server, other]) {
    each.on("eth_getBlockByNumber", () => blockJson(7));
    each.on("eth_getBalance", () => "0xde0b6b3a7640000");
  }
  const clock = createManualClock();
  const telemetry = recordTelemetry();
  const urls = [server.url, other.url].slice(0, endpoints);
  const chain = await createEvmChain({ urls, telemetry, clock, entropy: createSeededEntropy(1), ...options });
  return {
    server,
    other,
    chain,
    clock,
    telemetry,
    close: async () => {
      await chain.close();
      await Promise.all([server.close(), other.close()]);
    },
  };
}

export const hashOf = (seed: number): Hash => `0x${seed.toString(16).padStart(64, "0")}`;

/** A block in the JSON format of nodes. */
export function blockJson(number: number, overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    number: `0x${number.toString(16)}`,
    hash: hashOf(1_000 + number),
    parentHash: hashOf(999 + number),
    transactions: [hashOf(1), hashOf(2)],
    baseFeePerGas: "0x3b9aca00",
    gasLimit: "0x1c9c380",
    ...overrides,
  };
}

export const block = (number: number): Block => ({
  number,
  hash: hashOf(1_000 + number),
  parentHash: hashOf(999 + number),
  transactionHashes: [hashOf(1), hashOf(2)],
  baseFeePerGas: 1_000_000_000n,
  gasLimit: 30_000_000n,
  headerHolds: false,
});

/** The receipt of the `seed`th transaction in block 7. */
export function receiptJson(seed: number, overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    transactionHash: hashOf(seed),
    blockNumber: "0x7",
    blockHash: hashOf(1_007),
    transactionIndex: `0x${(seed - 1).toString(16)}`,
    status: "0x1",
    gasUsed: "0x5208",
    effectiveGasPrice: "0x3b9aca00",
    contractAddress: null,
    logs: [],
    ...overrides,
  };
}
