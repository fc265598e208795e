import { CLOSED } from "../commit-slots.ts";
import { statement } from "./statement.ts";

/**
 * Waits for the transaction that uses the slot, also where that is its first and no row shows yet. Where it left its
 * marker ($3), that stays; else the slot is closed, and a transaction that is still on its way to the server ends there. The
 * time counts from now: what cleans up behind those who are gone must leave the closed slot to whoever is yet to arrive.
 */
export const closeSlot = statement<{ readonly marker: string }>(
  "close-slot",
  `INSERT INTO fencepost.commit_marker AS m (store_id, slot, marker, written_at)
   VALUES ($1::uuid, $2::integer, '${CLOSED}', now())
   ON CONFLICT (store_id, slot) DO UPDATE
   SET marker = CASE m.marker WHEN $3::uuid THEN m.marker ELSE excluded.marker END, written_at = excluded.written_at
   RETURNING m.marker`,
);
