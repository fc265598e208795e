import type { ChainIdentity } from "../../ports/chain.ts";
import { blockFrom } from "./read-block.ts";
import { readNumber } from "./rpc/quantities.ts";
import { RpcErrorAnswer, resultOf } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";

/** Chain id and the hash of block 0: two chains that share a number still begin differently. */
export async function fetchIdentity(rpc: Pick<RpcTransport, "batch">): Promise<ChainIdentity> {
  const [chainId, genesis] = await rpc.batch([
    { method: "eth_chainId", params: [] },
    { method: "eth_getBlockByNumber", params: ["0x0", false] },
  ]);
  // A node that expired old history (EIP-4444) refuses block 0 in words of its own: then the number must do.
  const refused = genesis?.ok === false && genesis.error instanceof RpcErrorAnswer;
  return {
    chainId: readNumber(resultOf(chainId), "eth_chainId"),
    genesisHash: refused ? null : (blockFrom(genesis, { number: 0 })?.hash ?? null),
  };
}
