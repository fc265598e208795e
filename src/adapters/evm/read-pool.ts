import type { Address, Hash } from "../../domain/lane.ts";
import { BadAnswer } from "./rpc/quantities.ts";
import { type RpcReply, resultOf, saysMethodUnsupported } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";

/**
 * What waits in the node's pool from one sender, by nonce. geth and reth show it as `txpool_contentFrom`, Erigon and
 * some rollups answer `eth_getTransactionBySenderAndNonce`; null where the node has neither, as hosted ones often do.
 */
export async function fetchPooled(
  rpc: Pick<RpcTransport, "batch">,
  address: Address,
  nonces: readonly number[],
): Promise<readonly (Hash | null)[] | null> {
  const [content] = await rpc.batch([{ method: "txpool_contentFrom", params: [address] }]);
  if (!isUnsupported(content)) return fromContent(resultOf(content), nonces);
  const calls = nonces.map((nonce) => ({
    method: "eth_getTransactionBySenderAndNonce",
    params: [address, `0x${nonce.toString(16)}`],
  }));
  const replies = await rpc.batch(calls);
  if (replies.some(isUnsupported)) return null;
  return replies.map((reply) => hashOf(resultOf(reply)));
}

function isUnsupported(reply: RpcReply | undefined): boolean {
  return reply !== undefined && !reply.ok && saysMethodUnsupported(reply.error);
}

function fromContent(content: unknown, nonces: readonly number[]): readonly (Hash | null)[] {
  if (!isObject(content)) throw new BadAnswer("txpool_contentFrom did not answer with an object");
  const { pending, queued } = content;
  const byNonce = { ...(isObject(queued) ? queued : {}), ...(isObject(pending) ? pending : {}) };
  return nonces.map((nonce) => hashOf(byNonce[String(nonce)] ?? null));
}

function hashOf(transaction: unknown): Hash | null {
  if (transaction === null) return null;
  const hash = isObject(transaction) ? transaction.hash : undefined;
  if (typeof hash !== "string" || !/^0x[0-9a-f]{64}$/i.test(hash))
    throw new BadAnswer("a pooled transaction has no hash");
  return hash.toLowerCase() as Hash;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
