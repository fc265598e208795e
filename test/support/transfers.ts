import type { CreateTransaction } from "../../src/client/index.ts";
import { RECIPIENT, SIGNER } from "./integration.ts";

const GWEI = 1_000_000_000n;

/** A transfer whose value identifies it on the chain: no two transfers of a test have the same payload. */
export function transfer(index: number, prefix = "request"): CreateTransaction & { readonly requestId: string } {
  return { signer: SIGNER, requestId: `${prefix}-${index}`, payload: { to: RECIPIENT, value: `${BigInt(index + 1)}` } };
}

/** A transfer with gas and fees, which is accepted without a read from the chain. */
export function pricedTransfer(index: number, prefix = "request"): ReturnType<typeof transfer> {
  const { payload, ...rest } = transfer(index, prefix);
  const fees = { gas: "21000", maxFeePerGas: `${20n * GWEI}`, maxPriorityFeePerGas: `${GWEI}` } as const;
  return { ...rest, payload: { ...payload, ...fees } };
}

export function range(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index);
}
