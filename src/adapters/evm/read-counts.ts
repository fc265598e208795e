import type { Address } from "../../domain/lane.ts";
import type { Endpoint } from "./rpc/endpoints.ts";
import { readNumber } from "./rpc/quantities.ts";
import { resultOf } from "./rpc/rpc-errors.ts";
import type { RpcCall, RpcTransport } from "./rpc/transport.ts";

const COUNT = "eth_getTransactionCount";

export type CountTag = "latest" | "pending";

export async function fetchCount(rpc: RpcTransport, address: Address, tag: CountTag): Promise<number> {
  return readNumber(await rpc.request(COUNT, [address, tag]), COUNT);
}

/** A count, and how far its endpoint had come at the least when it counted. */
export interface CountAtHead {
  readonly head: number;
  readonly count: number;
}

interface Waiting {
  readonly call: RpcCall;
  readonly settle: (answer: Promise<CountAtHead>) => void;
}

/**
 * Counts with the head of the endpoint that gives them. All that are asked of one endpoint in one moment share a question
 * for its head. That comes first in each request: a head that was read after a count would vouch for blocks that the
 * count knows nothing of.
 */
export class CountsAtHead {
  readonly #waiting = new Map<Endpoint, Waiting[]>();

  ask(endpoint: Endpoint, address: Address, tag: CountTag): Promise<CountAtHead> {
    return new Promise((settle) => {
      const waiting = this.#waiting.get(endpoint) ?? [];
      waiting.push({ call: { method: COUNT, params: [address, tag] }, settle });
      if (waiting.length > 1) return;
      this.#waiting.set(endpoint, waiting);
      queueMicrotask(() => this.#leave(endpoint));
    });
  }

  #leave(endpoint: Endpoint): void {
    const waiting = this.#waiting.get(endpoint) ?? [];
    this.#waiting.delete(endpoint);
    const atOnce = Math.max(1, endpoint.rpc.callsAtOnce - 1);
    for (let from = 0; from < waiting.length; from += atOnce) {
      const part = waiting.slice(from, from + atOnce);
      const replies = endpoint.rpc.batch([{ method: "eth_blockNumber", params: [] }, ...part.map(({ call }) => call)]);
      // One that is refused concerns nobody else.
      const answerOf = async (index: number): Promise<CountAtHead> => {
        const [head, ...counts] = await replies;
        return {
          head: readNumber(resultOf(head), "eth_blockNumber"),
          count: readNumber(resultOf(counts[index]), COUNT),
        };
      };
      for (const [index, { settle }] of part.entries()) settle(answerOf(index));
    }
  }
}
