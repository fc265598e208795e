import type { Kill } from "../domain/cluster/kills.ts";

/** A kill as stored in the database. */
export interface KillRecord extends Kill {
  readonly at: Date;
  readonly ended: boolean;
}

/**
 * Kills are stored outside the lanes, so no lane's lock or owner can delay a kill. If a kill is missing from the
 * database, it was not written yet, or was lost with the database's history. A kill ends only by being marked as ended.
 */
export interface KillStore {
  /** Stores each kill once. A kill that was ended meanwhile stays ended. */
  keepKills(kills: readonly Kill[]): Promise<void>;
  /**
   * Ends every kill of the signer, or of everything (null), and the kills in `unkept`, which may not have been stored
   * yet.
   */
  endKills(end: Omit<Kill, "killId">, unkept: readonly Kill[]): Promise<void>;
  /** All kills in force, oldest first, and those of `killIds` in any state. */
  kills(killIds: readonly string[]): Promise<readonly KillRecord[]>;
}
