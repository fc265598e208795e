import { statement } from "./statement.ts";

/** Which of these lanes exist; the caller drops pairs that it did not ask for. */
export const findLanes = statement<{ readonly chain_id: number; readonly signer: string }>(
  "find-lanes",
  `SELECT l.chain_id, l.signer
   FROM fencepost.lane AS l
   WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])`,
);
