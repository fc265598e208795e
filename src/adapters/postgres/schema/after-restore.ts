/**
 * Marks a database as restored. A restored copy of the data directory, such as a volume's snapshot, looks like the same
 * server: same system, same timeline, same tables, and a WAL position that continues. Unless a running node remembers a
 * later state, nothing in the database shows the restore. So the operator must report it (`fencepost migrate
 * --after-restore`).
 */
import type pg from "pg";
import { BEGIN, PINNED_PATH } from "../session/opening.ts";

/**
 * System identifier that no server has. The next node to register then detects a changed history, begins a new epoch,
 * and leaves every lane to an operator (session/judge-history.ts).
 */
const UNLIKE_ANY = "restored";

/**
 * Statements that mark the restore. They take the registration lock. The heartbeat row of a node that still runs is
 * ended, so that it can write nothing more and must register again.
 */
const STATEMENTS = [
  "SELECT pg_advisory_xact_lock(hashtextextended('fencepost registration', 0))",
  "UPDATE fencepost.node_instance AS n SET dead = true WHERE NOT n.dead",
  `UPDATE fencepost.database_history AS h SET system_identifier = '${UNLIKE_ANY}'
   WHERE h.ordinal = (SELECT max(newest.ordinal) FROM fencepost.database_history AS newest)`,
] as const;

/**
 * Marks the database as restored. Safe to repeat. A database that no node ever used has no history, so no lane has to
 * wait.
 */
export function markRestored(client: pg.Client): Promise<void> {
  return transacting(client, async () => {
    for (const statement of STATEMENTS) await client.query(statement);
  });
}

/** Runs `work` in one transaction, which is rolled back if the work fails. */
export async function transacting<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query(`${BEGIN}; SET LOCAL ${PINNED_PATH}`);
  try {
    const result = await work();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}
