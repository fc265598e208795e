-- works with: 0008_queued_changes.sql
--
-- The newest migration that a node knows. Whoever would bring the schema further than a node that runs can follow is
-- refused, and sees by this which node that is. Null: it did not say.
ALTER TABLE fencepost.node_instance ADD COLUMN knows_migration text COLLATE "C";
