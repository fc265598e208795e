import type { Block, Call, Prospect } from "../../ports/chain.ts";
import { fetchFeeMarket } from "./fetch-fee-market.ts";
import { fetchTagged } from "./read-block.ts";
import type { RpcTransport } from "./rpc/transport.ts";
import { simulateCall } from "./simulate-call.ts";

/** The head is read first: the later answers are then from that block or a newer one. */
export async function fetchProspect(rpc: RpcTransport, call: Call): Promise<Prospect> {
  const head = (await fetchTagged(rpc, "latest")) as Block;
  const [simulation, { market }] = await Promise.all([simulateCall(rpc, call), fetchFeeMarket(rpc)]);
  return { head, market, simulation };
}
