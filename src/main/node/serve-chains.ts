import { WrongChain } from "../../adapters/evm/chain.ts";
import type { SchemaOptions } from "../../adapters/postgres/schema/migrate.ts";
import { serveChains } from "../../adapters/postgres/schema/served-chains.ts";
import type { Telemetry } from "../../ports/telemetry.ts";

interface OpenedChain {
  readonly chain: { readonly chainId: number };
  /** True if the configuration names the chain's id. */
  readonly named: boolean;
}

/**
 * Throws `WrongChain` if an endpoint reports a chain id that the configuration does not name and this database has
 * never served.
 */
export async function serveOnlyKnown(
  database: SchemaOptions,
  chains: readonly OpenedChain[],
  telemetry: Telemetry,
): Promise<void> {
  const starting = chains.map(({ chain: { chainId }, named }) => ({ chainId, named }));
  const serving = await serveChains(database, starting);
  if (serving.kind === "refused") throw new WrongChain(refusalOf(serving.chainIds, serving.served));
  for (const chainId of serving.adopted) telemetry.emit({ type: "chain.adopted", chainId });
}

export function refusalOf(chainIds: readonly number[], served: readonly number[]): string {
  const [chainId] = chainIds;
  const others = served.join(", ");
  return `the RPC endpoint reports chain ${chainIds.join(" and ")}, but this database has only served ${others}: if that is right, set FENCEPOST_CHAIN_ID=${chainId}, or the id in chains; else correct the URL`;
}
