import { expect } from "vitest";

/**
 * Checks that the counts stored in the database equal the actual numbers of rows, also after faults and lost
 * connections.
 */
export async function expectKeptCounts(database: {
  query(sql: string): Promise<{ readonly rows: readonly unknown[] }>;
}): Promise<void> {
  const { rows } = await database.query(
    `SELECT * FROM (
       SELECT signer, chain_id, state, count FROM fencepost.live_count WHERE count <> 0
     ) AS kept
     FULL JOIN (
       SELECT signer, chain_id, state, count(*) AS counted FROM fencepost.transaction WHERE live GROUP BY 1, 2, 3
     ) AS found USING (signer, chain_id, state)
     WHERE count IS DISTINCT FROM counted`,
  );
  expect(rows, "live transactions by lane and state, as kept and as counted").toEqual([]);
}
