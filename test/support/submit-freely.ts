import { isStarted, type SubmitResult } from "../../src/domain/chain/answers.ts";
import type { Address, Hex } from "../../src/domain/lane.ts";
import type { UnsignedTransaction } from "../../src/domain/transaction/transaction.ts";
import type { Chain, NodeSubmission, SubmitOptions } from "../../src/ports/chain.ts";

const freely = () => true;

/** Submits transactions; every send is permitted. */
export async function submitFreely(
  chain: Chain,
  raws: readonly Hex[],
  options?: SubmitOptions,
): Promise<readonly SubmitResult[]> {
  const results = await chain.submit(
    raws.map((raw) => ({ raw, mayLeave: freely })),
    options,
  );
  return results.map(started);
}

export async function sendUnsignedFreely(
  chain: Chain,
  from: Address,
  transaction: UnsignedTransaction,
): Promise<NodeSubmission> {
  const result = await chain.sendUnsigned(from, transaction, freely);
  if (!isStarted(result)) throw new Error("a send that nothing stops was not started");
  return result;
}

function started(result: Awaited<ReturnType<Chain["submit"]>>[number]): SubmitResult {
  if (!isStarted(result)) throw new Error("a send that nothing stops was not started");
  return result;
}
