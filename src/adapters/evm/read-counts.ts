import type { Address } from "../../domain/lane.ts";
import type { Endpoint } from "./rpc/endpoints.ts";
import { read } from "./rpc/quantities.ts";
import { type RpcReply, resultOf } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";
import type { RpcCall } from "./rpc/wire.ts";

const COUNT = "eth_getTransactionCount";
const HEAD = "eth_blockNumber";

export type CountTag = "latest" | "pending";

export async function fetchCount(rpc: RpcTransport, address: Address, tag: CountTag): Promise<number> {
  return read.number(await rpc.request(COUNT, [address, tag]), COUNT);
}

/** A request that gathers questions until this moment is over. */
interface Gathering {
  readonly calls: RpcCall[];
  readonly replies: Promise<readonly RpcReply[]>;
}

/**
 * Counts with the head of the endpoint that gives them. All that are asked of one endpoint in one moment share a question
 * for its head. That comes first in each request, and is answered before the rest leaves where they do not all fit into
 * one: a head that was read after a count would vouch for blocks that the count knows nothing of.
 */
export class CountsAtHead {
  readonly #gathering = new Map<Endpoint, Gathering>();

  /** One that is refused concerns nobody else. */
  async ask(
    endpoint: Endpoint,
    address: Address,
    tag: CountTag,
  ): Promise<{ readonly head: number; readonly count: number }> {
    const { calls, replies } = this.#gather(endpoint);
    const at = calls.push({ method: COUNT, params: [address, tag] }) - 1;
    const answers = await replies;
    return { head: read.number(resultOf(answers[0]), HEAD), count: read.number(resultOf(answers[at]), COUNT) };
  }

  #gather(endpoint: Endpoint): Gathering {
    const open = this.#gathering.get(endpoint);
    if (open !== undefined && open.calls.length < endpoint.rpc.callsAtOnce) return open;
    const calls: RpcCall[] = [{ method: HEAD, params: [] }];
    const replies = Promise.resolve().then(() => {
      if (this.#gathering.get(endpoint)?.calls === calls) this.#gathering.delete(endpoint);
      return endpoint.rpc.readInOrder(calls);
    });
    this.#gathering.set(endpoint, { calls, replies });
    return { calls, replies };
  }
}
