import type { Clock } from "../../ports/clock.ts";
import { readNumber } from "./rpc/quantities.ts";
import { createTransport } from "./rpc/transport.ts";

export interface ChainClaim {
  readonly label: string;
  readonly chainId: number;
}

export interface AskedEndpoints {
  readonly urls: readonly string[];
  readonly clock: Clock;
  readonly timeoutMs?: number;
}

/** What every endpoint that is up says of itself; those that are down are judged when they are back. */
export async function askChainIds({ urls, clock, timeoutMs }: AskedEndpoints): Promise<readonly ChainClaim[]> {
  const limit = timeoutMs === undefined ? {} : { timeoutMs };
  const claims = await Promise.all(
    urls.map(async (url): Promise<readonly ChainClaim[]> => {
      const rpc = createTransport({ ...limit, url, clock, report: () => undefined });
      try {
        return [{ label: rpc.label, chainId: readNumber(await rpc.request("eth_chainId", []), "eth_chainId") }];
      } catch {
        return [];
      } finally {
        await rpc.close();
      }
    }),
  );
  return claims.flat();
}
