import type { Kill } from "../domain/cluster/kills.ts";

/** A kill as stored in the database. */
export interface KillRecord extends Kill {
  readonly at: Date;
  readonly ended: boolean;
}

/**
 * Kills are stored outside the lanes, so no lane's lock or owner can delay a kill. A kill that is missing from the
 * database may still be in force: it was not written yet, or a restore lost it. It ends only when it is marked as
 * ended.
 */
export interface KillStore {
  /** Stores kills; one that is already stored is not stored again. A kill that was ended meanwhile stays ended. */
  keepKills(kills: readonly Kill[]): Promise<void>;
  /**
   * Ends every kill of the signer; with null, the kills that apply to all signers, but no kill of a single signer. Also
   * ends the kills in `unkept`, which may not have been stored yet.
   */
  endKills(end: Omit<Kill, "killId">, unkept: readonly Kill[]): Promise<void>;
  /** All kills in force, oldest first, and also those with ids in `killIds`, in force or ended. */
  kills(killIds: readonly string[]): Promise<readonly KillRecord[]>;
}
