import { statement } from "./statement.ts";

/** The only write without a fence, on a connection that is not ours. Sent unnamed. */
export const insertIntakeRow = statement<unknown>(
  "insert-intake-row",
  `INSERT INTO fencepost.intake (
     tx_id, chain_id, signer, request_id, to_address, data, value, gas, fee_type, gas_price, max_fee_per_gas,
     max_priority_fee_per_gas, access_list, metadata, fingerprint
   )
   VALUES (
     $1, $2, $3, $4, $5, decode($6, 'hex'), $7, $8, $9, $10, $11, $12, $13::jsonb, $14::jsonb, decode($15, 'hex')
   )`,
);
