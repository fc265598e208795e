import { describeChainContract } from "../../contracts/chain.contract.ts";
import { startEdrHarness } from "../../support/edr-harness.ts";

describeChainContract("EvmChain on EDR", { evm: true }, startEdrHarness);
