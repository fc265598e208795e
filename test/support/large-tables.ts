import type { Client } from "pg";

/**
 * Numbers of rows and lanes to create on one busy chain. A second chain has a few rows, which are older than all
 * others.
 */
export interface Size {
  readonly final: number;
  readonly waiting: number;
  readonly lanes: number;
  /** Time of the first transaction; a day ago by default. */
  readonly beginMs?: number;
}

export const BUSY_CHAIN = 1;
export const QUIET_CHAIN = 2;
export const UNUSED_CHAIN = 3;
/** Transactions in flight on every lane of the busy chain: the default window. */
const IN_FLIGHT = 64;

/** Time between two transactions, so that a million of them fill most of a day. */
const EVERY_MS = 80;

/** The n-th signer of either chain. */
export function signerAt(n: number): `0x${string}` {
  return `0x${n.toString(16).padStart(40, "0")}`;
}

/**
 * Fills an empty schema as years of use would. The oldest transactions are final and no longer watched for reorgs. Then
 * every lane gets a few final transactions that are still watched for reorgs, and a full window of transactions in
 * flight. The newest transactions wait to be signed. One transaction in a hundred thousand failed, and one lane is
 * stuck. A few requests wait in the intake table. They are older than the table's many aliases (rows that only point to
 * another row). Ids are in the order of creation, and begin with its time.
 */
export async function fillTables(client: Client, size: Size): Promise<void> {
  await withoutUpkeep(client, () => insertRows(client, size));
  const tables = ["transaction", "payload", "attempt", "intake", "lane"].map((name) => `fencepost.${name}`);
  await client.query(`VACUUM (ANALYZE) ${tables.join(", ")}`);
}

/** Builds indexes and counts live transactions once at the end: doing so row by row takes ten times as long. */
async function withoutUpkeep(client: Client, fill: () => Promise<void>): Promise<void> {
  const { rows: indexes } = await client.query<{ name: string; create: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS create FROM pg_index AS i
     WHERE i.indrelid = 'fencepost.transaction'::regclass AND NOT i.indisprimary`,
  );
  await client.query("BEGIN; ALTER TABLE fencepost.transaction DISABLE TRIGGER USER");
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`);
  await fill();
  for (const { create } of indexes) await client.query(create);
  await client.query(
    `UPDATE fencepost.lane AS l
     SET live_allocated = c.allocated, live_tracking = c.tracking, live_stuck = c.stuck, live_confirmed = c.confirmed,
       live_failed = c.failed
     FROM (
       SELECT t.signer, t.chain_id,
         count(*) FILTER (WHERE t.state = 'ALLOCATED') AS allocated,
         count(*) FILTER (WHERE t.state = 'TRACKING') AS tracking,
         count(*) FILTER (WHERE t.state = 'STUCK') AS stuck,
         count(*) FILTER (WHERE t.state = 'CONFIRMED') AS confirmed,
         count(*) FILTER (WHERE t.state = 'FAILED_FINAL') AS failed
       FROM fencepost.transaction AS t WHERE t.live GROUP BY t.signer, t.chain_id
     ) AS c WHERE l.signer = c.signer AND l.chain_id = c.chain_id`,
  );
  await client.query("ALTER TABLE fencepost.transaction ENABLE TRIGGER USER; COMMIT");
}

async function insertRows(client: Client, size: Size): Promise<void> {
  const { final, waiting, lanes, beginMs = Date.now() - 86_400_000 } = size;
  const ms = (n: string) => `(${beginMs} + ${EVERY_MS} * (${n})::bigint)`;
  const id = (n: string) => `(lpad(to_hex(${ms(n)}), 12, '0') || '70008000' || lpad(to_hex(${n}), 12, '0'))::uuid`;
  /** `created_at` and `updated_at`. */
  const at = (n: string) => `to_timestamp(${ms(n)} / 1000.0), to_timestamp(${ms(n)} / 1000.0)`;
  const signer = (n: string) => `'0x' || lpad(to_hex(${n}), 40, '0')`;
  await client.query(
    `INSERT INTO fencepost.lane (chain_id, signer, next_nonce, confirmed_total)
     SELECT ${BUSY_CHAIN}, ${signer("n")}, 10000000, 1000 FROM generate_series(0, ${lanes - 1}) AS n
     UNION ALL SELECT ${QUIET_CHAIN}, ${signer("0")}, 3, 3`,
  );
  const insert = `INSERT INTO fencepost.transaction (
    tx_id, chain_id, signer, nonce, state, sub_state, live, outcome, history_count, last_event, attempt_count, created_at,
    updated_at
  )`;
  await client.query(
    `${insert} SELECT ${id("n")}, ${QUIET_CHAIN}, ${signer("0")}, n, 'CONFIRMED', NULL, false, 'CONFIRMED', 1, 'confirm', 1,
       ${at("n")} FROM generate_series(1, 3) AS n`,
  );
  await client.query(
    `${insert} SELECT ${id("10 + n")}, ${BUSY_CHAIN}, ${signer(`n % ${lanes}`)}, n / ${lanes},
       CASE WHEN n % 100000 = 7 THEN 'FAILED_FINAL' ELSE 'CONFIRMED' END,
       CASE WHEN n % 100000 = 7 THEN 'REVERTED' END, false,
       CASE WHEN n % 100000 = 7 THEN 'FAILED_FINAL' ELSE 'CONFIRMED' END, 1, 'confirm', 1,
       ${at("10 + n")}
     FROM generate_series(0, ${final - 1}) AS n`,
  );
  const inFlight = IN_FLIGHT * lanes;
  await client.query(
    `${insert} SELECT ${id(`20 + ${final} + n`)}, ${BUSY_CHAIN}, ${signer(`n % ${lanes}`)}, 2000000 + n / ${lanes},
       CASE WHEN n = ${4 * lanes} THEN 'STUCK' WHEN n < ${4 * lanes} THEN 'CONFIRMED' ELSE 'TRACKING' END,
       CASE WHEN n > ${4 * lanes} THEN 'BROADCAST' END, true, NULL, 1, 'sign', 1,
       ${at(`20 + ${final} + n`)}
     FROM generate_series(0, ${inFlight - 1}) AS n`,
  );
  await client.query(
    `${insert} SELECT ${id(`30 + ${final + inFlight} + n`)}, ${BUSY_CHAIN}, ${signer(`n % ${lanes}`)},
       3000000 + n / ${lanes}, 'ALLOCATED', NULL, true, NULL, 1, 'allocate', 0,
       ${at(`30 + ${final + inFlight} + n`)}
     FROM generate_series(0, ${waiting - 1}) AS n`,
  );
  await client.query(
    `INSERT INTO fencepost.payload (tx_id, chain_id, data, value, fingerprint)
     SELECT tx_id, chain_id, '', 1, decode(repeat('00', 32), 'hex') FROM fencepost.transaction`,
  );
  await client.query(
    `INSERT INTO fencepost.attempt (
       tx_id, ordinal, chain_id, tx_hash, kind, gas, fee_type, gas_price, raw_transaction, created_at, first_sent_at
     )
     SELECT tx_id, 1, chain_id, '0x' || lpad(replace(tx_id::text, '-', ''), 64, '0'), 'initial', 21000, 'legacy', 1, '',
       created_at, created_at FROM fencepost.transaction WHERE attempt_count > 0`,
  );
  const intake = "INSERT INTO fencepost.intake (tx_id, chain_id, signer, data, value, fingerprint, alias_of)";
  const fields = "'', 1, decode(repeat('00', 32), 'hex')";
  await client.query(
    `${intake} SELECT ${id("100 + n")}, ${QUIET_CHAIN}, ${signer("0")}, ${fields}, NULL FROM generate_series(1, 3) AS n`,
  );
  await client.query(
    `${intake} SELECT ${id(`40 + ${final + inFlight + waiting} + n`)}, ${BUSY_CHAIN}, ${signer("0")}, ${fields}, ${id("10")}
     FROM generate_series(1, ${final / 10}) AS n`,
  );
}
