-- works with: 0009_skew.sql
--
-- Lists and counts that cost the same however large the tables are.
--
-- One index for each shape of list, all in the order of ids, which is that of creation: what is over by its outcome, what
-- is live, each of a chain and of a signer's lane. A list over several chains is merged from theirs. None of them names
-- `state`: an index on a column that changes at every step would make every step write every index again.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_final_of_chain
  ON fencepost.transaction (outcome, chain_id, tx_id) WHERE outcome IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_final_of_signer
  ON fencepost.transaction (signer, chain_id, outcome, tx_id) WHERE outcome IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_live_of_chain
  ON fencepost.transaction (chain_id, tx_id) WHERE live;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_live_of_signer
  ON fencepost.transaction (signer, chain_id, tx_id) WHERE live;

-- How many live transactions a lane has in each state. Kept by the statements that write them, in the same transaction and
-- under the same lock of the lane: a row for each lane and state that a batch changes, not for each transaction.
CREATE TABLE fencepost.live_count (
  state text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (state, chain_id, signer)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- By triggers and not by the program: while nodes are upgraded one after the other, those that do not know this table
-- write beside those that do.
CREATE FUNCTION fencepost.keep_live_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO fencepost.live_count AS kept (signer, chain_id, state, count)
    SELECT n.signer, n.chain_id, n.state, count(*) FROM after_rows AS n
    WHERE n.live
    GROUP BY n.signer, n.chain_id, n.state
    ORDER BY n.chain_id, n.signer, n.state
    ON CONFLICT (state, chain_id, signer) DO UPDATE SET count = kept.count + excluded.count;
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO fencepost.live_count AS kept (signer, chain_id, state, count)
    SELECT d.signer, d.chain_id, d.state, sum(d.change) FROM (
      SELECT n.signer, n.chain_id, n.state, 1 AS change FROM after_rows AS n WHERE n.live
      UNION ALL
      SELECT o.signer, o.chain_id, o.state, -1 FROM before_rows AS o WHERE o.live
    ) AS d
    GROUP BY d.signer, d.chain_id, d.state
    HAVING sum(d.change) <> 0
    ORDER BY d.chain_id, d.signer, d.state
    ON CONFLICT (state, chain_id, signer) DO UPDATE SET count = kept.count + excluded.count;
  ELSE
    INSERT INTO fencepost.live_count AS kept (signer, chain_id, state, count)
    SELECT o.signer, o.chain_id, o.state, -count(*) FROM before_rows AS o
    WHERE o.live
    GROUP BY o.signer, o.chain_id, o.state
    ORDER BY o.chain_id, o.signer, o.state
    ON CONFLICT (state, chain_id, signer) DO UPDATE SET count = kept.count + excluded.count;
  END IF;
  RETURN NULL;
END
$$;

-- Each holds writers up until COMMIT, so that nothing is written between the first count and the last.
CREATE TRIGGER keep_live_counts_of_inserts AFTER INSERT ON fencepost.transaction
  REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT EXECUTE FUNCTION fencepost.keep_live_counts();
CREATE TRIGGER keep_live_counts_of_updates AFTER UPDATE ON fencepost.transaction
  REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fencepost.keep_live_counts();
CREATE TRIGGER keep_live_counts_of_deletes AFTER DELETE ON fencepost.transaction
  REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT EXECUTE FUNCTION fencepost.keep_live_counts();

INSERT INTO fencepost.live_count (signer, chain_id, state, count)
SELECT t.signer, t.chain_id, t.state, count(*) FROM fencepost.transaction AS t
WHERE t.live
GROUP BY t.signer, t.chain_id, t.state;

-- The lists of the release before are answered without these, only slower.
DROP INDEX fencepost.transaction_by_outcome;
DROP INDEX fencepost.transaction_by_signer;
