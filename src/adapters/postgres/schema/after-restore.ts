/**
 * A restored copy of the data directory, such as a volume's snapshot, is the very same server: same system, same
 * timeline, same tables, and a WAL position that continues. If no node ran to remember more, nothing in the database
 * shows that it was restored. So the operator says it (`fencepost migrate --after-restore`).
 */
import type pg from "pg";
import { BEGIN, PINNED_PATH } from "../session/opening.ts";

/**
 * No server has this for its identifier: the next node to register finds another history, begins an epoch, and leaves
 * every lane to an operator (session/judge-history.ts).
 */
const UNLIKE_ANY = "restored";

/**
 * Registrations take turns, and this one with them. A node that runs all the same has its heartbeat row ended: it can write
 * nothing more, and has to register.
 */
const STATEMENTS = [
  "SELECT pg_advisory_xact_lock(hashtextextended('fencepost registration', 0))",
  "UPDATE fencepost.node_instance AS n SET dead = true WHERE NOT n.dead",
  `UPDATE fencepost.database_history AS h SET system_identifier = '${UNLIKE_ANY}'
   WHERE h.ordinal = (SELECT max(newest.ordinal) FROM fencepost.database_history AS newest)`,
] as const;

/** Safe to repeat. A database that no node ever ran on has no history, and nothing to wait for. */
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
