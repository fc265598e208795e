import { WrongChain } from "../adapters/evm/chain.ts";
import type { SchemaOptions } from "../adapters/postgres/migrate.ts";
import { serveChains } from "../adapters/postgres/served-chains.ts";
import type { Telemetry } from "../ports/telemetry.ts";

interface OpenedChain {
  readonly chain: { readonly chainId: number };
  /** The operator has named it. */
  readonly named: boolean;
}

/** Throws `WrongChain` for a chain that an endpoint names, nobody else does, and this database has never served. */
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
  return `the RPC endpoint says that it serves chain ${chainIds.join(" and ")}, and this database has served ${others} alone: where that is right, set FENCEPOST_CHAIN_ID=${chainId}, or the id in chains; else correct the URL`;
}
