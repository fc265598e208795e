import type { Address, CreateTransaction } from "../../../src/client/index.ts";
import { RECIPIENT } from "../integration.ts";
import { SIGNERS } from "./cluster.ts";

const GWEI = 1_000_000_000n;

/**
 * The n-th create: on its signer's lane, with a value that identifies it, and with all fields that would otherwise be
 * read from the chain.
 */
export function createOn(signers: readonly Address[], prefix = "request"): (index: number) => CreateTransaction {
  return (index) => ({
    signer: signers[index % signers.length] as Address,
    requestId: `${prefix}-${index}`,
    payload: {
      to: RECIPIENT,
      value: `${BigInt(index + 1)}`,
      gas: "21000",
      maxFeePerGas: `${20n * GWEI}`,
      maxPriorityFeePerGas: `${GWEI}`,
    },
  });
}

export const createAnywhere = createOn(SIGNERS);
