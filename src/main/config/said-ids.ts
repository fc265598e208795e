import { askChainIds } from "../../adapters/evm/ask-chain-ids.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import type { ResolvedChain } from "./chains.ts";
import type { SaidIds } from "./effective.ts";

/** `fencepost config` must also answer where the chains are down. */
const TIMEOUT_MS = 2_000;

/** Asks the endpoints of every chain whose id is not configured. One without an answer is left out. */
export async function saidIds(chains: readonly ResolvedChain[]): Promise<SaidIds> {
  const open = chains.filter(({ id }) => id === null);
  const claims = await Promise.all(
    open.map(({ rpcUrls }) => askChainIds({ urls: rpcUrls, clock: systemClock, timeoutMs: TIMEOUT_MS })),
  );
  return new Map(
    open.flatMap((chain, index) => {
      const chainId = claims[index]?.[0]?.chainId;
      return chainId === undefined ? [] : [[chain, chainId] as const];
    }),
  );
}
