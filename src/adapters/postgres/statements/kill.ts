import type { KillRecord } from "../../../ports/kill-store.ts";
import { lists, names } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

const KILL = "kill_id uuid, signer text, actor text, reason text";

/** Stores kills. A kill that is already stored stays unchanged, even if it was ended. */
export const keepKills = taking(KILL)("keep-kills")`
  INSERT INTO fencepost.kill (${names(KILL)}, at)
  SELECT ${names(KILL)}, clock_timestamp() FROM (${lists(KILL)}) AS k
  ON CONFLICT (kill_id) DO NOTHING`;

/** Ends kills. $1: the signer, or null for kills of everything; $2: the actor; $3: the reason. */
export const endKills = statement("end-kills")`
  UPDATE fencepost.kill AS k SET ended_at = clock_timestamp(), ended_by = $2, ended_why = $3
  WHERE k.signer IS NOT DISTINCT FROM $1::text AND k.ended_at IS NULL`;

/** Reads the kills in force, and those with the ids $1. There are only ever few kills. */
export const readKills = statement<KillRecord>("read-kills")`
  SELECT k.kill_id, k.signer, k.actor, k.reason, k.at, k.ended_at IS NOT NULL AS ended
  FROM fencepost.kill AS k
  WHERE k.ended_at IS NULL OR k.kill_id = ANY ($1::uuid[])
  ORDER BY k.at, k.kill_id`;
