import { numberToHex } from "viem/utils";
import type { Address, Hash } from "../../domain/lane.ts";
import { read } from "./rpc/quantities.ts";
import { resultOf, saysMethodUnsupported } from "./rpc/rpc-errors.ts";
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
  const shown = resultOf(content, saysMethodUnsupported);
  if (shown !== undefined) return fromContent(shown, nonces);
  const method = "eth_getTransactionBySenderAndNonce";
  const replies = await rpc.batch(nonces.map((nonce) => ({ method, params: [address, numberToHex(nonce)] })));
  const found = replies.map((reply) => resultOf(reply, saysMethodUnsupported));
  return found.includes(undefined) ? null : found.map(hashOf);
}

function fromContent(content: unknown, nonces: readonly number[]): readonly (Hash | null)[] {
  const { pending, queued } = read.record(content, "txpool_contentFrom");
  const byNonce = { ...Object(queued), ...Object(pending) } as Readonly<Record<string, unknown>>;
  return nonces.map((nonce) => hashOf(byNonce[String(nonce)] ?? null));
}

function hashOf(transaction: unknown): Hash | null {
  const fields = read.optional(read.record, transaction, "a pooled transaction");
  return fields && read.hash(fields.hash, "a pooled transaction's hash");
}
