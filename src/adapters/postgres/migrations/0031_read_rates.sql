-- works with: 0030_retention.sql
--
-- How often an API key may have a chain asked, on each node. Null: as the nodes are configured.
ALTER TABLE fencepost.api_key ADD COLUMN reads_per_second integer;
ALTER TABLE fencepost.api_key ADD CONSTRAINT api_key_reads_per_second CHECK (reads_per_second > 0);
