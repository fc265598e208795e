/**
 * A chain as its loops were last told of it, for views of everything that are drawn every second: whatever would have to be
 * asked is unknown instead, which explanations leave out.
 */
import type { Address } from "../../domain/lane.ts";
import { type Block, type Chain, ChainUnavailable } from "../../ports/chain.ts";
import type { ChainContext } from "./chain-context.ts";
import type { CountFact } from "./counts.ts";

export function asLastTold(context: ChainContext): ChainContext {
  const notAsked = async (): Promise<never> => {
    throw new ChainUnavailable("the chain is not asked for this");
  };
  const told = async (address: Address, tag: "latest" | "pending"): Promise<CountFact> => {
    const count = context.counts.lastTold(address)[tag];
    return count === null ? notAsked() : { count, atBlock: 0, endpoint: "", askedAtMs: 0 };
  };
  const blocksByNumber = async (numbers: readonly number[]): Promise<readonly (Block | null)[]> => {
    const { head } = context.follower;
    return numbers.map((number) => (number === head?.number ? head : null));
  };
  const known = { chainId: context.chain.chainId, endpoints: context.chain.endpoints, blocksByNumber };
  const chain = new Proxy(context.chain, {
    get: (_, name) => (name in known ? known[name as keyof typeof known] : notAsked),
  }) satisfies Chain;
  const counts = Object.create(context.counts, {
    mined: { value: (address: Address) => told(address, "latest") },
    pending: { value: (address: Address) => told(address, "pending") },
    everywhere: { value: notAsked },
    at: { value: notAsked },
  });
  const balance = async (address: Address) => context.knownBalances.get(address) ?? notAsked();
  return Object.create(context, {
    chain: { value: chain },
    counts: { value: counts },
    balance: { value: balance },
    askBalance: { value: balance },
    feeMarket: { value: notAsked },
    secondOpinion: { value: notAsked },
  });
}
