import { numberToHex } from "viem/utils";
import type { Fees } from "../../domain/fees.ts";
import type { Address } from "../../domain/lane.ts";
import type { UnsignedTransaction } from "../../domain/transaction.ts";
import type { NodeSubmission } from "../../ports/chain.ts";
import type { Endpoints } from "./rpc/endpoints.ts";
import { BadAnswer, readHash } from "./rpc/quantities.ts";
import { RpcUnreachable } from "./rpc/rpc-errors.ts";
import { readHashReply, weightiest } from "./submit-transactions.ts";

/** `eth_sendTransaction`, with every field given: the node adds its signature and nothing else. */
export async function sendUnsigned(
  endpoints: Endpoints,
  from: Address,
  transaction: UnsignedTransaction,
): Promise<NodeSubmission> {
  const [endpoint] = endpoints.usable();
  if (endpoint === undefined) return { ...weightiest([]), txHash: null };
  const calls = [{ method: "eth_sendTransaction", params: [toParameter(from, transaction)] }];
  try {
    return await endpoints.askOne(endpoint, async (rpc) => {
      const [reply] = await rpc.sendInOrder(calls);
      if (reply === undefined) throw new RpcUnreachable("malformed", "a call was left unanswered");
      const { result, lost } = readHashReply(reply);
      if (lost !== null) throw lost;
      const isTaken = reply.ok && result.answer === "accepted";
      return { ...result, txHash: isTaken ? readHash(reply.result, "eth_sendTransaction") : null };
    });
  } catch (error) {
    if (!(error instanceof RpcUnreachable || error instanceof BadAnswer)) throw error;
    return { answer: "unknown", detail: error.message, txHash: null };
  }
}

function toParameter(from: Address, transaction: UnsignedTransaction): Readonly<Record<string, unknown>> {
  const { chainId, nonce, to, data, value, gas, fees, accessList } = transaction;
  return {
    from,
    ...(to === null ? {} : { to }),
    chainId: numberToHex(chainId),
    nonce: numberToHex(nonce),
    data,
    value: numberToHex(value),
    gas: numberToHex(gas),
    ...toFeeFields(fees),
    ...(accessList.length === 0 ? {} : { accessList }),
  };
}

function toFeeFields(fees: Fees): Readonly<Record<string, string>> {
  if (fees.type !== "eip1559") return { gasPrice: numberToHex(fees.gasPrice) };
  return { maxFeePerGas: numberToHex(fees.maxFeePerGas), maxPriorityFeePerGas: numberToHex(fees.maxPriorityFeePerGas) };
}
