import { privateKeyToAddress } from "viem/accounts";
import { encodeErrorResult } from "viem/utils";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import type { Chain } from "../../../src/ports/chain.ts";
import type { ChainHarness, Reverting } from "../../contracts/chain.contract.ts";
import type { SimulatedChain } from "./core.ts";

const KEYS: readonly Hex[] = [`0x${"11".repeat(32)}`, `0x${"22".repeat(32)}`];
const ETHER = 10n ** 18n;

const REVERTING: Reverting = {
  withReason: `0x${"a1".repeat(20)}`,
  withPanic: `0x${"a2".repeat(20)}`,
  withCustomError: `0x${"a3".repeat(20)}`,
  silently: `0x${"a4".repeat(20)}`,
};

const errorAbi = [{ type: "error", name: "Error", inputs: [{ name: "message", type: "string" }] }] as const;
const panicAbi = [{ type: "error", name: "Panic", inputs: [{ name: "code", type: "uint256" }] }] as const;

/**
 * Adapts a simulated chain (with `defaultBalance: 0n`), with or without JSON-RPC, to the harness of the Chain contract
 * suite.
 */
export function chainHarness(simulated: SimulatedChain, chain: Chain, close: () => Promise<void>): ChainHarness {
  const accounts = KEYS.map((privateKey) => {
    const address = privateKeyToAddress(privateKey).toLowerCase() as Address;
    simulated.setBalance(address, 1_000n * ETHER);
    return { address, privateKey };
  });
  const nodeAccount: Address = `0x${"5e".repeat(20)}`;
  simulated.setBalance(nodeAccount, 1_000n * ETHER);
  simulated.holdKeys(nodeAccount);
  programmeReverts(simulated);
  return {
    chain,
    accounts,
    nodeAccount,
    reverting: REVERTING,
    mine: async () => void simulated.mine(),
    reorg: async (depth) => void simulated.reorg(depth, { drop: "all" }),
    close,
  };
}

function programmeReverts(simulated: SimulatedChain): void {
  simulated.revertCallsTo(
    REVERTING.withReason,
    encodeErrorResult({ abi: errorAbi, errorName: "Error", args: ["no lunch"] }),
  );
  simulated.revertCallsTo(REVERTING.withPanic, encodeErrorResult({ abi: panicAbi, errorName: "Panic", args: [0x11n] }));
  simulated.revertCallsTo(REVERTING.withCustomError, `0xdeadbeef${"0".repeat(62)}2a`);
  simulated.revertCallsTo(REVERTING.silently, "0x");
}
