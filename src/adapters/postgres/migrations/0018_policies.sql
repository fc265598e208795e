-- works with: 0009_skew.sql
--
-- What of the policies' limits is used. A signer's use stands on its lane, whose row every write has locked: the hour that
-- it is about (its day is the one that the hour lies in), and what was counted in that hour and day, in wei. Null: nothing
-- was ever counted.
ALTER TABLE fencepost.lane
  ADD COLUMN use_hour timestamptz,
  ADD COLUMN hour_value numeric(78, 0),
  ADD COLUMN hour_cost numeric(78, 0),
  ADD COLUMN day_value numeric(78, 0),
  ADD COLUMN day_cost numeric(78, 0),
  ADD CONSTRAINT lane_use CHECK (num_nulls(use_hour, hour_value, hour_cost, day_value, day_cost) IN (0, 5)) NOT VALID;

-- Entry by entry what was counted for a transaction, never changed: its worst case, what a further payload added, and what
-- was taken back once it was final. Only transactions that a policy limits have any.
CREATE TABLE fencepost.charge (
  tx_id uuid NOT NULL,
  charge_id bigint GENERATED ALWAYS AS IDENTITY,
  chain_id bigint NOT NULL,
  ordinal integer NOT NULL,
  moves numeric(78, 0) NOT NULL,
  counted_in timestamptz NOT NULL,
  value numeric(78, 0) NOT NULL,
  cost numeric(78, 0) NOT NULL,
  settles boolean NOT NULL,
  PRIMARY KEY (tx_id, charge_id),
  CONSTRAINT charge_ordinal CHECK (ordinal >= 0),
  CONSTRAINT charge_moves CHECK (moves >= 0),
  CONSTRAINT charge_amounts CHECK (settles OR (value >= 0 AND cost >= 0))
);
