import type { Block, Call, Prospect } from "../../ports/chain.ts";
import { fetchFeeMarket } from "./fetch-fee-market.ts";
import { fetchTagged } from "./read-block.ts";
import type { RpcTransport } from "./rpc/transport.ts";
import { simulateCall } from "./simulate-call.ts";

/** The head first: an endpoint that has come to it answers the rest from that block, or from a later one. */
export async function fetchProspect(rpc: RpcTransport, call: Call): Promise<Prospect> {
  const head = (await fetchTagged(rpc, "latest")) as Block;
  const [simulation, { market }] = await Promise.all([simulateCall(rpc, call), fetchFeeMarket(rpc)]);
  return { head, market, simulation };
}
