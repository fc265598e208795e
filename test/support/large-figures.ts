import type { Client } from "pg";
import { BUSY_CHAIN } from "./large-tables.ts";

const INSTANCE = "019a4b7e-5d2c-7c3e-9f10-2b4d6f8a0c1e";
const DETAIL = { finality: { 90: 5 }, baseFee: ["5000000000", 5, "2000000000"], troubles: { STUCK: 1 } };

/**
 * Fills the figures as a week of use would: every lane of the busy chain had five outcomes in each hour of these days,
 * and the n-th lane paid n million wei more than a fixed amount in each. The chain has a bucket for each minute of the last
 * day and for each hour of all days.
 */
export async function fillFigures(client: Client, lanes: number, days: number): Promise<void> {
  const signer = "'0x' || lpad(to_hex(n), 40, '0')";
  const row = `${BUSY_CHAIN}, '${INSTANCE}'::uuid`;
  const counts = "(signer, step_seconds, at, chain_id, instance_id, created, completed, failed, fees, detail)";
  await client.query(
    `INSERT INTO fencepost.figures ${counts}
     SELECT ${signer}, 3600, date_trunc('hour', now()) - h * interval '1 hour', ${row}, 5, 5, 0, 1e15 + n * 1e6, $1::jsonb
     FROM generate_series(${days * 24 - 1}, 0, -1) AS h, generate_series(0, ${lanes - 1}) AS n
     UNION ALL
     SELECT '', 3600, date_trunc('hour', now()) - h * interval '1 hour', ${row}, 350, 350, 0, 1e17, $1::jsonb
     FROM generate_series(${days * 24 - 1}, 0, -1) AS h
     UNION ALL
     SELECT '', 60, date_trunc('minute', now()) - m * interval '1 minute', ${row}, 350, 350, 0, 1e17, $1::jsonb
     FROM generate_series(1439, 0, -1) AS m`,
    [DETAIL],
  );
  await client.query(
    `INSERT INTO fencepost.spend (signer, at, chain_id, instance_id, ranks)
     SELECT ${signer}, date_trunc('day', now(), 'UTC') - d * interval '1 day', ${row},
       ARRAY(SELECT h * (1e15 + n * 1e6 + 5) FROM generate_series(1, 24) AS h)
     FROM generate_series(${days}, 0, -1) AS d, generate_series(0, ${lanes - 1}) AS n`,
  );
  await client.query("VACUUM (ANALYZE) fencepost.figures, fencepost.spend");
}
