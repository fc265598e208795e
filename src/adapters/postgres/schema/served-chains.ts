/**
 * Checks which chains this database has served. An endpoint that reports a wrong chain id would cause transactions to
 * be signed for that chain. So an unknown chain id reported by an endpoint is accepted only if the database is fresh.
 * Otherwise the operator must configure it.
 */
import type pg from "pg";
import { transacting } from "./after-restore.ts";
import { type SchemaOptions, withClient } from "./migrate.ts";

export interface StartingChain {
  readonly chainId: number;
  /** True if the operator configured the chain id; false if an endpoint reported it. */
  readonly named: boolean;
}

export type Serving =
  /** `adopted`: chain ids that endpoints reported, accepted because the database is fresh. */
  | { readonly kind: "served"; readonly adopted: readonly number[] }
  | { readonly kind: "refused"; readonly chainIds: readonly number[]; readonly served: readonly number[] };

/**
 * SQL: lock under which nodes that start at once check their chains one by one. On a fresh database, the later nodes
 * find the first node's chain.
 */
const TAKE_TURNS = "SELECT pg_advisory_xact_lock(hashtextextended('fencepost served chains', 0))";

export const SERVED_CHAINS = `
  SELECT s.chain_id::float8 AS "chainId" FROM (
    SELECT v.chain_id FROM fencepost.served_chain AS v
    UNION SELECT c.chain_id FROM fencepost.chain AS c
    UNION SELECT l.chain_id FROM fencepost.lane AS l
  ) AS s ORDER BY 1`;

const NOTE_SERVED = `
  INSERT INTO fencepost.served_chain (chain_id) SELECT unnest($1::bigint[]) ON CONFLICT (chain_id) DO NOTHING`;

export function serveChains(options: SchemaOptions, chains: readonly StartingChain[]): Promise<Serving> {
  return withClient(options, (client) => transacting(client, () => judge(client, chains)));
}

async function judge(client: pg.Client, chains: readonly StartingChain[]): Promise<Serving> {
  await client.query(TAKE_TURNS);
  const { rows } = await client.query<{ readonly chainId: number }>(SERVED_CHAINS);
  const served = rows.map(({ chainId }) => chainId);
  const unknown = chains.filter(({ chainId, named }) => !named && !served.includes(chainId));
  const chainIds = unknown.map(({ chainId }) => chainId);
  if (served.length > 0 && chainIds.length > 0) return { kind: "refused", chainIds, served };
  if (chains.some(({ chainId }) => !served.includes(chainId)))
    await client.query(NOTE_SERVED, [chains.map(({ chainId }) => chainId)]);
  return { kind: "served", adopted: chainIds };
}
