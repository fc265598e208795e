import type { Hex } from "../../../src/domain/lane.ts";
import type { Call } from "../../../src/ports/chain.ts";
import type { SimulatedChain } from "./core.ts";
import { intrinsicGas } from "./transaction.ts";
import type { ChainView } from "./view.ts";

/** The result of a call on a chain without an EVM: gas used, a programmed revert, or an amount above the balance. */
export type CallOutcome =
  | { readonly outcome: "ok"; readonly gas: bigint }
  | { readonly outcome: "revert"; readonly data: Hex }
  | { readonly outcome: "insufficientFunds"; readonly detail: string }
  | { readonly outcome: "gasTooLow"; readonly detail: string }
  | { readonly outcome: "gasOverBlock"; readonly detail: string };

export interface PricedCall extends Call {
  readonly maxFeePerGas?: bigint;
}

export function simulateCall(chain: SimulatedChain, view: ChainView, call: PricedCall): CallOutcome {
  const { balance } = view.account(call.from);
  const gas = call.gas ?? 0n;
  const want = call.value + gas * (call.maxFeePerGas ?? 0n);
  if (want > balance) {
    const detail = `insufficient funds for gas * price + value: address ${call.from} have ${balance} want ${want}`;
    return { outcome: "insufficientFunds", detail };
  }
  const intrinsic = intrinsicGas(Buffer.from(call.data.slice(2), "hex"), call.to === null, {
    addresses: call.accessList?.length ?? 0,
    storageKeys: call.accessList?.reduce((sum, entry) => sum + entry.storageKeys.length, 0) ?? 0,
  });
  const needed = intrinsic + chain.gasBurnedAt(call.to);
  if (needed > chain.gasLimit || gas > chain.gasLimit) {
    return { outcome: "gasOverBlock", detail: `gas required exceeds allowance (${chain.gasLimit})` };
  }
  if (call.gas !== undefined && call.gas < needed) {
    return { outcome: "gasTooLow", detail: `intrinsic gas too low: have ${call.gas}, want ${needed}` };
  }
  const data = view.saysReverts(call.to) ? "0x" : chain.revertDataOf(call.to);
  return data === null ? { outcome: "ok", gas: view.estimate(needed) } : { outcome: "revert", data };
}
