-- works with: 0037_release_0_1_0.sql
--
-- A short name of a transaction that its caller gives it.
ALTER TABLE fencepost.intake ADD COLUMN label text COLLATE "C";
ALTER TABLE fencepost.payload ADD COLUMN label text COLLATE "C";
