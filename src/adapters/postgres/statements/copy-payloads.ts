import { statement } from "./statement.ts";

/** As the second half of insert-transactions.ts, for what nobody had accepted before. Its rows: commit/copies.ts. */
export const copyPayloads = statement<unknown>(
  "copy-payloads",
  `COPY fencepost.payload (
     tx_id, chain_id, to_address, data, value, gas, gas_limit, fee_type, gas_price, max_fee_per_gas,
     max_priority_fee_per_gas, access_list, metadata, fingerprint, allocated_by, allocated_under, allocated_at
   ) FROM STDIN`,
);
