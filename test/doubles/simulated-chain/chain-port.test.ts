import { describeChainContract } from "../../contracts/chain.contract.ts";
import { DirectChain } from "./chain-port.ts";
import { SimulatedChain } from "./core.ts";
import { chainHarness } from "./harness.ts";

describeChainContract("simulated chain, direct", { evm: true }, async () => {
  const simulated = new SimulatedChain({ defaultBalance: 0n });
  const chain = new DirectChain(simulated);
  return chainHarness(simulated, chain, () => chain.close());
});
