import type { Fees } from "../../domain/fees.ts";
import type { Address } from "../../domain/lane.ts";
import type { UnsignedTransaction } from "../../domain/transaction.ts";
import type { NodeSubmission } from "../../ports/chain.ts";
import { RpcUnreachable } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";
import { readHashReply } from "./submit-transactions.ts";

/** `eth_sendTransaction`, with every field given: the node adds its signature and nothing else. */
export async function sendThroughNode(
  rpc: Pick<RpcTransport, "sendInOrder">,
  from: Address,
  transaction: UnsignedTransaction,
): Promise<NodeSubmission> {
  const [reply] = await rpc.sendInOrder([{ method: "eth_sendTransaction", params: [toParameter(from, transaction)] }]);
  if (reply === undefined) throw new RpcUnreachable("malformed", "a call was left unanswered");
  if (!reply.ok && reply.error instanceof RpcUnreachable) throw reply.error;
  const txHash = reply.ok && typeof reply.result === "string" ? reply.result : null;
  const { result } = readHashReply(reply);
  return { ...result, txHash: result.answer === "accepted" ? (txHash?.toLowerCase() as `0x${string}`) : null };
}

function toParameter(from: Address, transaction: UnsignedTransaction): Readonly<Record<string, unknown>> {
  const { chainId, nonce, to, data, value, gas, fees, accessList } = transaction;
  return {
    from,
    ...(to === null ? {} : { to }),
    chainId: toHex(chainId),
    nonce: toHex(nonce),
    data,
    value: toHex(value),
    gas: toHex(gas),
    ...toFeeFields(fees),
    ...(accessList.length === 0 ? {} : { accessList }),
  };
}

function toFeeFields(fees: Fees): Readonly<Record<string, string>> {
  if (fees.type !== "eip1559") return { gasPrice: toHex(fees.gasPrice) };
  return { maxFeePerGas: toHex(fees.maxFeePerGas), maxPriorityFeePerGas: toHex(fees.maxPriorityFeePerGas) };
}

function toHex(value: number | bigint): string {
  return `0x${value.toString(16)}`;
}
