-- works with: 0009_skew.sql
--
-- The indexes of lists, smaller, and walked to the end of what was asked for and no further on every version of PostgreSQL.
--
-- In front of the id stands one number instead of outcome, chain and signer: an entry of what is over takes 36 bytes
-- instead of 52 (of a chain) and 100 (of a signer), and there are two for each transaction, for ever. A server before 18
-- ends the walk of an index by its first column alone; now there is no second one before the id. Two lanes whose numbers
-- are the same by chance cost a look at each other's rows: the statements compare the columns themselves as well.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_over_on_chain
  ON fencepost.transaction (hashtextextended(outcome, chain_id), tx_id) WHERE outcome IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_over_on_lane
  ON fencepost.transaction (hashtextextended(outcome || signer, chain_id), tx_id) WHERE outcome IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_live_on_lane
  ON fencepost.transaction (hashtextextended(signer, chain_id), tx_id) WHERE live;

-- What waits in the intake table, apart from the aliases, which stay there for ever. Not for those rows alone: that table
-- is empty most of the time, and a plan from then would walk such an index for anything that waits.
CREATE INDEX CONCURRENTLY IF NOT EXISTS intake_on_chain
  ON fencepost.intake ((CASE WHEN alias_of IS NULL THEN chain_id END), tx_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS intake_on_lane
  ON fencepost.intake ((CASE WHEN alias_of IS NULL THEN hashtextextended(signer, chain_id) END), tx_id);

-- The lists of the release before are answered without these, only slower.
DROP INDEX fencepost.transaction_final_of_chain;
DROP INDEX fencepost.transaction_final_of_signer;
DROP INDEX fencepost.transaction_live_of_signer;
