import { privateKeyToAccount } from "viem/accounts";
import type { Hex } from "../../src/domain/lane.ts";
import type { ChainHarness } from "../contracts/chain.contract.ts";

const GWEI = 1_000_000_000n;

export interface TransferOptions {
  readonly from?: number;
  readonly nonce: number;
  readonly value?: bigint;
  readonly gas?: bigint;
  readonly maxFeePerGas?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
  readonly chainId?: number;
}

/** A signed transfer to account 1, from account 0 by default. */
export async function transfer(h: ChainHarness, options: TransferOptions): Promise<Hex> {
  const signer = privateKeyToAccount(account(h.accounts, options.from ?? 0).privateKey);
  return signer.signTransaction({
    type: "eip1559",
    chainId: options.chainId ?? h.chain.chainId,
    nonce: options.nonce,
    to: account(h.accounts, 1).address,
    value: options.value ?? 1n,
    gas: options.gas ?? 21_000n,
    maxFeePerGas: options.maxFeePerGas ?? 10n * GWEI,
    maxPriorityFeePerGas: options.maxPriorityFeePerGas ?? GWEI,
  });
}

export function account(accounts: ChainHarness["accounts"], index: number): ChainHarness["accounts"][number] {
  const found = accounts[index];
  if (found === undefined) throw new Error(`the harness has no account ${index}`);
  return found;
}
