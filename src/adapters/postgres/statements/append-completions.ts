import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists(
  "tx_id uuid, chain_id bigint, signer text, request_id text, nonce bigint, state text, sub_state text, " +
    "settled boolean, tx_hash text",
);

/**
 * The feed: last statement before COMMIT, and on the wire together with it. Whoever appends holds the counter row until
 * COMMIT, so numbers become visible in order and without gaps. $1 to $9, a place for each, in their order; $10 how many
 * they are.
 */
export const appendCompletions = statement<AppendedRow>(
  "append-completions",
  `WITH counter AS (
     UPDATE fencepost.feed AS f SET last_seq = f.last_seq + $10 WHERE f.only_row RETURNING f.epoch, f.last_seq
   ), appended AS (
     INSERT INTO fencepost.completion (
       seq, epoch, tx_id, chain_id, signer, request_id, nonce, state, sub_state, settled, tx_hash, at
     )
     SELECT counter.last_seq - $10 + c.place, counter.epoch, c.tx_id, c.chain_id, c.signer, c.request_id, c.nonce,
       c.state, c.sub_state, c.settled, c.tx_hash, now()
     FROM counter, (${ROWS}, generate_subscripts($1::uuid[], 1) AS place) AS c
     RETURNING 1
   )
   SELECT counter.last_seq, fencepost.require_rows((SELECT count(*) FROM appended), $10, 'completions') FROM counter`,
);

export interface AppendedRow {
  readonly last_seq: number;
}
