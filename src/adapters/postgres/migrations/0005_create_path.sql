-- A create writes two rows instead of three: the first step of its history (allocated out of nothing, by whom, under
-- which token and when) stands with the payload, which is never changed either. Transactions that came through the
-- intake table have their first two steps in the history, as before, and so have those from before this migration: these
-- columns are null there.
ALTER TABLE fencepost.payload
  ADD COLUMN allocated_by text,
  ADD COLUMN allocated_under bigint,
  ADD COLUMN allocated_at timestamptz,
  ADD CONSTRAINT payload_allocated CHECK (num_nulls(allocated_by, allocated_under, allocated_at) IN (0, 3));

-- The whole history of every transaction. Read this, not the table of its later steps.
CREATE VIEW fencepost.every_step AS
  SELECT tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count,
    first_at, last_at
  FROM fencepost.history
  UNION ALL
  SELECT tx_id, 1, chain_id, 'allocate', NULL, 'ALLOCATED', NULL, allocated_by, allocated_under, NULL, NULL, NULL, 1,
    allocated_at, allocated_at
  FROM fencepost.payload
  WHERE allocated_at IS NOT NULL;

-- For transactions that leave the client in one write, BEGIN and COMMIT included. Where BEGIN alone fails (cancelled, say),
-- the server takes each of the others for a transaction of its own: they ask here whether theirs was opened, and end
-- where it was not. What opened it is gone by then, since it was set for the transaction alone.
CREATE FUNCTION fencepost.require_open(mark text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF mark IS NOT NULL AND mark IS DISTINCT FROM current_setting('fencepost.transaction', true) THEN
    RAISE EXCEPTION 'the transaction that this belongs to is not open' USING ERRCODE = 'FP002';
  END IF;
  RETURN true;
END
$$;
