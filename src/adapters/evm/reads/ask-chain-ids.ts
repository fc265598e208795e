import type { EndpointsOptions } from "../rpc/endpoints.ts";
import { fetchChainId } from "../rpc/read-block.ts";
import { createTransport } from "../rpc/transport.ts";

/** Chain id of every endpoint that answers. Endpoints that are down are checked when they come back. */
export async function askChainIds({ urls, ...options }: Pick<EndpointsOptions, "urls" | "clock" | "timeoutMs">) {
  const claims = urls.map(async (url) => {
    const rpc = createTransport({ ...options, url, report: () => undefined });
    try {
      return [{ label: rpc.label, chainId: await fetchChainId(rpc) }];
    } catch {
      return [];
    } finally {
      await rpc.close();
    }
  });
  return (await Promise.all(claims)).flat();
}
