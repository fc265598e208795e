/**
 * Which chains this database has served. An endpoint that says another chain id than it should would have transactions
 * signed for that chain: so a chain that no node has served here is taken from an endpoint's word on a fresh database
 * alone, and has to be named by the operator on every other.
 */
import type pg from "pg";
import { transacting } from "./after-restore.ts";
import { type SchemaOptions, withClient } from "./migrate.ts";

export interface StartingChain {
  readonly chainId: number;
  /** True: the operator named the chain id. False: an endpoint reported it. */
  readonly named: boolean;
}

export type Serving =
  /** `adopted`: by an endpoint's word, on a fresh database. */
  | { readonly kind: "served"; readonly adopted: readonly number[] }
  | { readonly kind: "refused"; readonly chainIds: readonly number[]; readonly served: readonly number[] };

/** Nodes that start at once take turns: on a fresh database the first one's chain is the one that the others find. */
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
