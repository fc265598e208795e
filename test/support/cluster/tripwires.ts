import { readFile } from "node:fs/promises";
import type { Database } from "../integration.ts";

export interface Term {
  readonly signer: string;
  readonly token: number;
  readonly instance_id: string;
  readonly node_id: string;
}

/**
 * Installs triggers that record every change of the nodes to this database from now on, and check it at each COMMIT.
 */
export async function layTripwires(database: Database): Promise<void> {
  await database.query(await readFile(new URL("tripwires.sql", import.meta.url), "utf8"));
}

/** Returns the recorded writes that the fencing token should have stopped. */
export async function violations(database: Database): Promise<readonly string[]> {
  const rows = await database.query<{ what: string }>("SELECT what FROM tripwire.violation ORDER BY at");
  return rows.map(({ what }) => what);
}

/** Every ownership of a lane (term) so far, in the order in which they began. */
export function terms(database: Database): Promise<readonly Term[]> {
  return database.query("SELECT signer, token::int AS token, instance_id, node_id FROM tripwire.term ORDER BY seq");
}
