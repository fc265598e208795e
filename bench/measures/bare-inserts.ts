import { randomBytes, randomUUID } from "node:crypto";
import pg from "pg";
import { query } from "../environment/databases.ts";

const ROWS_AT_ONCE = 200;

const TABLE = `CREATE TABLE bare (
  tx_id uuid PRIMARY KEY, chain_id bigint NOT NULL, signer text NOT NULL, request_id text, nonce bigint NOT NULL,
  state text NOT NULL, to_address text, data bytea NOT NULL, value numeric NOT NULL, gas bigint,
  max_fee_per_gas numeric, max_priority_fee_per_gas numeric, fingerprint bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
)`;

const INSERT = {
  name: "insert-bare",
  text: `INSERT INTO bare (tx_id, chain_id, signer, request_id, nonce, state, to_address, data, value, gas,
      max_fee_per_gas, max_priority_fee_per_gas, fingerprint)
    SELECT tx_id, chain_id, signer, request_id, nonce, 'ALLOCATED', to_address, data, value, gas, max_fee_per_gas,
      max_priority_fee_per_gas, fingerprint
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bytea[], $8::numeric[],
      $9::bigint[], $10::numeric[], $11::numeric[], $12::bytea[]) AS row(tx_id, chain_id, signer, request_id, nonce,
      to_address, data, value, gas, max_fee_per_gas, max_priority_fee_per_gas, fingerprint)`,
};

export interface BareInserts {
  /** Rows per second. */
  run(turnMs: number): Promise<number>;
  close(): Promise<void>;
}

/**
 * What the same server does with the same information and none of the promises: one table, one index, every value of
 * every row sent to it, rows in batches, one batch after the other as one signer's creates are.
 */
export async function openBareInserts(databaseUrl: string): Promise<BareInserts> {
  await query(databaseUrl, TABLE);
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  let nonce = 0;
  return {
    run: async (turnMs) => {
      const startMs = performance.now();
      const first = nonce;
      for (; performance.now() - startMs < turnMs; nonce += ROWS_AT_ONCE) {
        await client.query({ ...INSERT, values: columns(nonce) });
      }
      return (1_000 * (nonce - first)) / (performance.now() - startMs);
    },
    close: () => client.end(),
  };
}

const SIGNER = `0x${"5e".repeat(20)}`;
const DATA = randomBytes(68);
const FINGERPRINT = randomBytes(32);

function columns(nonce: number): unknown[][] {
  const each = <T>(value: (index: number) => T) => Array.from({ length: ROWS_AT_ONCE }, (_, index) => value(index));
  return [
    each(() => randomUUID()),
    each(() => 31_337),
    each(() => SIGNER),
    each((index) => `bench-${nonce + index}`),
    each((index) => nonce + index),
    each(() => SIGNER),
    each(() => DATA),
    each(() => "1"),
    each(() => "60000"),
    each(() => "3000000000"),
    each(() => "1000000000"),
    each(() => FINGERPRINT),
  ];
}
