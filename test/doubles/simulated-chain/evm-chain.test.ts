import { createEvmChain } from "../../../src/adapters/evm/chain.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { createEntropy } from "../../../src/adapters/system/entropy.ts";
import { type ChainHarness, describeChainContract } from "../../contracts/chain.contract.ts";
import { SimulatedChain } from "./core.ts";
import { Faults } from "./faults.ts";
import { chainHarness } from "./harness.ts";
import { type SimulatedServerOptions, startSimulatedServer } from "./server.ts";

async function start(options: Partial<SimulatedServerOptions>): Promise<ChainHarness> {
  const simulated = new SimulatedChain({ defaultBalance: 0n });
  const server = await startSimulatedServer({ chain: simulated, ...options });
  const chain = await createEvmChain({
    urls: [server.url],
    clock: systemClock,
    entropy: createEntropy(systemClock),
    telemetry: { emit: () => undefined },
  });
  return chainHarness(simulated, chain, async () => {
    await chain.close();
    await server.close();
  });
}

describeChainContract("EvmChain on the simulated chain", { evm: true }, () => start({}));
describeChainContract("EvmChain on a node without eth_getBlockReceipts", { evm: true }, () =>
  start({ blockReceipts: false }),
);
describeChainContract("EvmChain on a node that looks up by sender and nonce", { evm: true }, () => {
  const faults = new Faults();
  faults.lookUpByNonce();
  return start({ faults });
});
