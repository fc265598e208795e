-- works with: 0009_skew.sql
--
-- What an API key has used of its limits, of all its signers on a chain, in wei: as on a lane, but no lane's lock covers it.
-- It is therefore added to where it stands, and the transaction ends where that would be above the limit.
CREATE TABLE fencepost.key_use (
  owner text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  use_hour timestamptz NOT NULL,
  hour_value numeric(78, 0) NOT NULL,
  hour_cost numeric(78, 0) NOT NULL,
  day_value numeric(78, 0) NOT NULL,
  day_cost numeric(78, 0) NOT NULL,
  PRIMARY KEY (owner, chain_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Ends a transaction that was decided by what is no longer so. Decided anew it may well succeed, so it is told as what it
-- is: a serialization failure.
CREATE FUNCTION fencepost.require_still(actual bigint, planned bigint, what text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF actual IS DISTINCT FROM planned THEN
    RAISE EXCEPTION '%: % of % are still as they were', what, actual, planned USING ERRCODE = '40001';
  END IF;
  RETURN actual;
END
$$;

-- Which policies nodes began to work with, and when: an audit. The newest row of a node is what it has in force.
CREATE TABLE fencepost.policy_change (
  change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node_id text NOT NULL,
  hash text COLLATE "C",
  document jsonb,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT policy_change_none CHECK ((hash IS NULL) = (document IS NULL))
);
