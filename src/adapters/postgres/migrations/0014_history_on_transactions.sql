-- works with: 0009_skew.sql
--
-- The steps of an ordinary life (allocated, signed, taken by a node, mined, confirmed, one after the other under one term)
-- stand on the row of the transaction, which each of them changes anyway: a time each, and who gave the nonce. As rows of
-- their own they were four of fifteen row versions, a third of what the server did, and 900 of 3,300 bytes. Every other
-- step is a row as before: a detour, one with a reason, one of another node or term, one that is repeated, one that
-- comes in another place.
ALTER TABLE fencepost.transaction
  ADD COLUMN allocated_by text,
  ADD COLUMN allocated_under bigint,
  ADD COLUMN signed_at timestamptz,
  ADD COLUMN broadcast_at timestamptz,
  ADD COLUMN mined_at timestamptz,
  ADD COLUMN settled_at timestamptz,
  ADD CONSTRAINT transaction_steps CHECK (
    num_nulls(allocated_by, allocated_under) = 0
      OR num_nonnulls(allocated_by, allocated_under, signed_at, broadcast_at, mined_at, settled_at) = 0
  ) NOT VALID;

ALTER TABLE fencepost.history RENAME TO step;

-- The whole history of every transaction, wherever a step stands. The first step of a transaction from before this
-- migration stands with its payload, or is a row.
CREATE VIEW fencepost.history AS
  SELECT tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count,
    first_at, last_at
  FROM fencepost.step
  UNION ALL
  SELECT s.tx_id, s.ordinal, s.chain_id, s.event, s.from_state, s.state, s.sub_state, s.allocated_by, s.allocated_under, NULL,
    NULL, NULL, 1, s.at, s.at
  FROM (
    SELECT t.tx_id, t.chain_id, t.allocated_by, t.allocated_under,
      unnest('{1, 2, 3, 4, 5}'::integer[]) AS ordinal,
      unnest('{allocate, sign, broadcast, mine, confirm}'::text[]) AS event,
      unnest('{NULL, ALLOCATED, TRACKING, TRACKING, TRACKING}'::text[]) AS from_state,
      unnest('{ALLOCATED, TRACKING, TRACKING, TRACKING, CONFIRMED}'::text[]) AS state,
      unnest('{NULL, PENDING, BROADCAST, MINED, NULL}'::text[]) AS sub_state,
      unnest(ARRAY[t.created_at, t.signed_at, t.broadcast_at, t.mined_at, t.settled_at]) AS at
    FROM fencepost.transaction AS t
    WHERE t.allocated_by IS NOT NULL
  ) AS s
  WHERE s.at IS NOT NULL
  UNION ALL
  SELECT tx_id, 1, chain_id, 'allocate', NULL, 'ALLOCATED', NULL, allocated_by, allocated_under, NULL, NULL, NULL, 1,
    allocated_at, allocated_at
  FROM fencepost.payload
  WHERE allocated_at IS NOT NULL;

-- The release before reads the history under this name.
CREATE OR REPLACE VIEW fencepost.every_step AS SELECT * FROM fencepost.history;

-- A step that is written here becomes a row, and one that is repeated becomes one first. The release before writes all of
-- its steps here, also of transactions that a newer node has begun.
CREATE FUNCTION fencepost.write_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.count := coalesce(NEW.count, 1);
  IF TG_OP = 'UPDATE' THEN
    UPDATE fencepost.step AS s
    SET (node_id, token, reason, actor, audit, count, first_at, last_at)
      = (NEW.node_id, NEW.token, NEW.reason, NEW.actor, NEW.audit, NEW.count, NEW.first_at, NEW.last_at)
    WHERE s.tx_id = OLD.tx_id AND s.ordinal = OLD.ordinal;
    IF FOUND THEN
      RETURN NEW;
    END IF;
    IF OLD.ordinal = 1 THEN
      RAISE EXCEPTION 'the first step of % is not repeated', OLD.tx_id USING ERRCODE = 'check_violation';
    END IF;
    UPDATE fencepost.transaction AS t
    SET signed_at = CASE OLD.ordinal WHEN 2 THEN NULL ELSE t.signed_at END,
      broadcast_at = CASE OLD.ordinal WHEN 3 THEN NULL ELSE t.broadcast_at END,
      mined_at = CASE OLD.ordinal WHEN 4 THEN NULL ELSE t.mined_at END,
      settled_at = CASE OLD.ordinal WHEN 5 THEN NULL ELSE t.settled_at END
    WHERE t.tx_id = OLD.tx_id;
  END IF;
  INSERT INTO fencepost.step (
    tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count, first_at,
    last_at
  ) VALUES (
    NEW.tx_id, NEW.ordinal, NEW.chain_id, NEW.event, NEW.from_state, NEW.state, NEW.sub_state, NEW.node_id, NEW.token,
    NEW.reason, NEW.actor, NEW.audit, NEW.count, NEW.first_at, NEW.last_at
  );
  RETURN NEW;
END
$$;
CREATE TRIGGER write_step INSTEAD OF INSERT OR UPDATE ON fencepost.history
  FOR EACH ROW EXECUTE FUNCTION fencepost.write_step();
