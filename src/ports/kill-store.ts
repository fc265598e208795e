import type { Kill } from "../domain/kills.ts";

/** An order as it stands in the database. */
export interface KillRecord extends Kill {
  readonly at: Date;
  readonly ended: boolean;
}

/**
 * Orders to stop, outside the lanes: no lock and no owner of a lane stands in their way. An order that is not there has not
 * been written yet, or was lost with the history of the database; one ends by being marked as ended, and in no other way.
 */
export interface KillStore {
  /** Writes orders down, each once. One that was ended meanwhile stays ended. */
  keepKills(kills: readonly Kill[]): Promise<void>;
  /** Ends every order about that signer, or about everything (null); also these, which may not have been written yet. */
  endKills(end: Omit<Kill, "killId">, unkept: readonly Kill[]): Promise<void>;
  /** All in force, oldest first, and those of `killIds` whatever became of them. */
  kills(killIds: readonly string[]): Promise<readonly KillRecord[]>;
}
