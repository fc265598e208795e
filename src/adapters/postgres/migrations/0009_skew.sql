-- works with: 0008_queued_changes.sql
--
-- The newest migration that a node knows. Whoever would bring the schema further than a node that runs can follow is
-- refused, and sees by this which node that is. Null: it did not say.
ALTER TABLE fencepost.node_instance ADD COLUMN knows_migration text COLLATE "C";

-- Before a takeover that row locks starve. Whoever shares the lock on a row is let in past the one who waits for it
-- alone; on the table everybody waits in line. A function, because only a query can be prepared.
CREATE FUNCTION fencepost.lock_lane_table() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE fencepost.lane IN EXCLUSIVE MODE;
END
$$;
