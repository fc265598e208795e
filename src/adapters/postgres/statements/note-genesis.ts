import { statement } from "./statement.ts";

/** The first to see a chain notes how it begins; whoever comes later changes nothing. */
export const noteGenesis = statement<unknown>(
  "note-genesis",
  `INSERT INTO fencepost.chain (chain_id, genesis_hash)
   SELECT g.chain_id, g.genesis_hash FROM json_to_recordset($1::json) AS g(chain_id bigint, genesis_hash text)
   ON CONFLICT (chain_id) DO NOTHING`,
);
