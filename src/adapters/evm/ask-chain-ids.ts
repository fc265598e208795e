import { readNumber } from "./rpc/quantities.ts";
import { createTransport, type TransportOptions } from "./rpc/transport.ts";

export interface ChainClaim {
  readonly label: string;
  readonly chainId: number;
}

export interface AskedEndpoints extends Pick<TransportOptions, "clock" | "timeoutMs"> {
  readonly urls: readonly string[];
}

/** What every endpoint that is up says of itself; those that are down are judged when they are back. */
export async function askChainIds({ urls, ...options }: AskedEndpoints): Promise<readonly ChainClaim[]> {
  const claims = urls.map(async (url): Promise<readonly ChainClaim[]> => {
    const rpc = createTransport({ ...options, url, report: () => undefined });
    try {
      return [{ label: rpc.label, chainId: readNumber(await rpc.request("eth_chainId", []), "eth_chainId") }];
    } catch {
      return [];
    } finally {
      await rpc.close();
    }
  });
  return (await Promise.all(claims)).flat();
}
