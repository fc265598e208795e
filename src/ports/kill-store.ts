import type { Kill } from "../domain/cluster/kills.ts";

/** A kill as stored. */
export interface KillRecord extends Kill {
  readonly at: Date;
  readonly ended: boolean;
}

/**
 * Kills are stored outside the lanes, so no lane's lock or owner can delay one. A kill that is missing was not written
 * yet, or was lost with the database's history. A kill ends only by being marked as ended.
 */
export interface KillStore {
  /** Writes each kill once. One that was ended meanwhile stays ended. */
  keepKills(kills: readonly Kill[]): Promise<void>;
  /** Ends every kill of that signer, or of everything (null); also these ids, which may not have been written yet. */
  endKills(end: Omit<Kill, "killId">, unkept: readonly Kill[]): Promise<void>;
  /** All kills in force, oldest first, and those of `killIds` in any state. */
  kills(killIds: readonly string[]): Promise<readonly KillRecord[]>;
}
