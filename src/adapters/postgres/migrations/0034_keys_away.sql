-- works with: 0030_retention.sql
--
-- Signers whose key an instance has and could not sign with, by its own failed signatures; NULL: its release does not say.
ALTER TABLE fencepost.node_instance ADD COLUMN keys_away text[] COLLATE "C";
