-- works with: 0030_retention.sql
--
-- Chains that nodes have served on this database. Whoever starts on a chain that is not among them has to name it: else the
-- endpoint alone would choose which chain transactions are signed for. A node of the release before serves without a row;
-- its lanes show it.
CREATE TABLE fencepost.served_chain (
  chain_id bigint PRIMARY KEY,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT served_chain_id CHECK (chain_id > 0)
);

INSERT INTO fencepost.served_chain (chain_id)
SELECT l.chain_id FROM fencepost.lane AS l UNION SELECT c.chain_id FROM fencepost.chain AS c;
