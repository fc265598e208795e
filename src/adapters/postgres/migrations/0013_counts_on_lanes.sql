-- works with: 0009_skew.sql
--
-- How many live transactions a lane has in each state, on the lane's own row. Every write has that row locked, and most
-- change it anyway: its cursor when a nonce is given, its totals when something settles. Rows of their own for each lane
-- and state cost six more versions for each transaction where lanes are many.
ALTER TABLE fencepost.lane
  ADD COLUMN live_allocated bigint NOT NULL DEFAULT 0,
  ADD COLUMN live_tracking bigint NOT NULL DEFAULT 0,
  ADD COLUMN live_stuck bigint NOT NULL DEFAULT 0,
  ADD COLUMN live_confirmed bigint NOT NULL DEFAULT 0,
  ADD COLUMN live_failed bigint NOT NULL DEFAULT 0;

-- A program that keeps these counts says so in the transaction (opening.ts). For everybody else they are kept by
-- triggers: nodes of the release before, which write beside newer ones during an upgrade, and people with a console.
DROP TRIGGER keep_live_counts_of_inserts ON fencepost.transaction;
DROP TRIGGER keep_live_counts_of_updates ON fencepost.transaction;
DROP TRIGGER keep_live_counts_of_deletes ON fencepost.transaction;

-- Counted anew, not copied: whatever was wrong in the table before would stay wrong for ever. Nobody writes meanwhile, so
-- only what is live is looked at, by an index, however much is over.
SET LOCAL enable_seqscan TO off;
UPDATE fencepost.lane AS l
SET live_allocated = c.allocated,
  live_tracking = c.tracking,
  live_stuck = c.stuck,
  live_confirmed = c.confirmed,
  live_failed = c.failed
FROM (
  SELECT t.signer, t.chain_id,
    count(*) FILTER (WHERE t.state = 'ALLOCATED') AS allocated,
    count(*) FILTER (WHERE t.state = 'TRACKING') AS tracking,
    count(*) FILTER (WHERE t.state = 'STUCK') AS stuck,
    count(*) FILTER (WHERE t.state = 'CONFIRMED') AS confirmed,
    count(*) FILTER (WHERE t.state = 'FAILED_FINAL') AS failed
  FROM fencepost.transaction AS t
  WHERE t.live
  GROUP BY t.signer, t.chain_id
) AS c
WHERE l.signer = c.signer AND l.chain_id = c.chain_id;
SET LOCAL enable_seqscan TO DEFAULT;

DROP TABLE fencepost.live_count;

-- Every signer is above the empty text: said so that lanes are read by their key where tables may not be scanned.
CREATE VIEW fencepost.live_count AS
SELECT c.state COLLATE "C" AS state, l.chain_id, l.signer, c.count
FROM fencepost.lane AS l
CROSS JOIN LATERAL (
  VALUES
    ('ALLOCATED', l.live_allocated),
    ('TRACKING', l.live_tracking),
    ('STUCK', l.live_stuck),
    ('CONFIRMED', l.live_confirmed),
    ('FAILED_FINAL', l.live_failed)
) AS c(state, count)
WHERE l.signer >= '';

-- What a statement changes is added up by lane and state first: it may have written a million rows.
CREATE OR REPLACE FUNCTION fencepost.keep_live_counts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  signers text[];
  chain_ids bigint[];
  states text[];
  changes bigint[];
BEGIN
  IF TG_OP = 'INSERT' THEN
    SELECT array_agg(c.signer), array_agg(c.chain_id), array_agg(c.state), array_agg(c.change)
    INTO signers, chain_ids, states, changes
    FROM (
      SELECT n.signer, n.chain_id, n.state, count(*) AS change FROM after_rows AS n
      WHERE n.live
      GROUP BY n.signer, n.chain_id, n.state
    ) AS c;
  ELSIF TG_OP = 'UPDATE' THEN
    SELECT array_agg(c.signer), array_agg(c.chain_id), array_agg(c.state), array_agg(c.change)
    INTO signers, chain_ids, states, changes
    FROM (
      SELECT d.signer, d.chain_id, d.state, sum(d.change) AS change FROM (
        SELECT n.signer, n.chain_id, n.state, 1 AS change FROM after_rows AS n WHERE n.live
        UNION ALL
        SELECT o.signer, o.chain_id, o.state, -1 FROM before_rows AS o WHERE o.live
      ) AS d
      GROUP BY d.signer, d.chain_id, d.state
      HAVING sum(d.change) <> 0
    ) AS c;
  ELSE
    SELECT array_agg(c.signer), array_agg(c.chain_id), array_agg(c.state), array_agg(c.change)
    INTO signers, chain_ids, states, changes
    FROM (
      SELECT o.signer, o.chain_id, o.state, -count(*) AS change FROM before_rows AS o
      WHERE o.live
      GROUP BY o.signer, o.chain_id, o.state
    ) AS c;
  END IF;
  UPDATE fencepost.lane AS l
  SET live_allocated = l.live_allocated + c.allocated,
    live_tracking = l.live_tracking + c.tracking,
    live_stuck = l.live_stuck + c.stuck,
    live_confirmed = l.live_confirmed + c.confirmed,
    live_failed = l.live_failed + c.failed
  FROM (
    SELECT r.signer, r.chain_id,
      coalesce(sum(r.change) FILTER (WHERE r.state = 'ALLOCATED'), 0) AS allocated,
      coalesce(sum(r.change) FILTER (WHERE r.state = 'TRACKING'), 0) AS tracking,
      coalesce(sum(r.change) FILTER (WHERE r.state = 'STUCK'), 0) AS stuck,
      coalesce(sum(r.change) FILTER (WHERE r.state = 'CONFIRMED'), 0) AS confirmed,
      coalesce(sum(r.change) FILTER (WHERE r.state = 'FAILED_FINAL'), 0) AS failed
    FROM unnest(signers, chain_ids, states, changes) AS r(signer, chain_id, state, change)
    GROUP BY r.signer, r.chain_id
  ) AS c
  WHERE l.signer = ANY (signers) AND l.chain_id = ANY (chain_ids) AND l.signer = c.signer AND l.chain_id = c.chain_id;
  RETURN NULL;
END
$$;

CREATE TRIGGER keep_live_counts_of_inserts AFTER INSERT ON fencepost.transaction
  REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT
  WHEN (current_setting('fencepost.counts', true) IS DISTINCT FROM 'kept')
  EXECUTE FUNCTION fencepost.keep_live_counts();
CREATE TRIGGER keep_live_counts_of_updates AFTER UPDATE ON fencepost.transaction
  REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows FOR EACH STATEMENT
  WHEN (current_setting('fencepost.counts', true) IS DISTINCT FROM 'kept')
  EXECUTE FUNCTION fencepost.keep_live_counts();
CREATE TRIGGER keep_live_counts_of_deletes AFTER DELETE ON fencepost.transaction
  REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT
  WHEN (current_setting('fencepost.counts', true) IS DISTINCT FROM 'kept')
  EXECUTE FUNCTION fencepost.keep_live_counts();
