import { statement } from "./statement.ts";

/** The feed after a number. Nothing below a number that was seen can appear later: see append-completions.ts. */
export const readCompletions = statement<CompletionRow>(
  "read-completions",
  `SELECT c.seq, c.epoch, c.tx_id, c.chain_id, c.signer, c.request_id, c.nonce, c.state, c.sub_state, c.settled,
     c.tx_hash, c.at
   FROM fencepost.completion AS c
   WHERE c.seq > $1
   ORDER BY c.seq
   LIMIT $2`,
);

export interface CompletionRow {
  readonly seq: number;
  readonly epoch: number;
  readonly tx_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly request_id: string | null;
  readonly nonce: number | null;
  readonly state: string;
  readonly sub_state: string | null;
  readonly settled: boolean;
  readonly tx_hash: string | null;
  readonly at: Date;
}
