-- What an operator or a hook put in the place of a payload that was not signed yet. The caller's own stays in
-- fencepost.payload for ever; whoever signs reads this one first.
CREATE TABLE fencepost.queued_change (
  tx_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  -- The kind of attempt that it becomes.
  kind text COLLATE "C" NOT NULL,
  to_address text COLLATE "C",
  data bytea NOT NULL,
  value numeric(78, 0) NOT NULL,
  gas bigint,
  gas_limit bigint NOT NULL,
  fee_type text COLLATE "C",
  gas_price numeric(78, 0),
  max_fee_per_gas numeric(78, 0),
  max_priority_fee_per_gas numeric(78, 0),
  access_list jsonb,
  CONSTRAINT queued_change_kind CHECK (kind IN ('cancel', 'replace', 'placeholder')),
  CONSTRAINT queued_change_to_address CHECK (octet_length(to_address) = 42 AND to_address ~ '^0x[0-9a-f]*$'),
  CONSTRAINT queued_change_data CHECK (octet_length(data) <= 131072),
  CONSTRAINT queued_change_value CHECK (value >= 0),
  CONSTRAINT queued_change_gas CHECK (gas >= 0 AND gas_limit >= 0),
  CONSTRAINT queued_change_fee_type CHECK (fee_type IN ('legacy', 'eip2930', 'eip1559')),
  CONSTRAINT queued_change_fees CHECK (gas_price >= 0 AND max_fee_per_gas >= 0 AND max_priority_fee_per_gas >= 0)
);

-- What people decided about a lane as a whole, for whoever asks later. Appended in the transaction that did it.
CREATE TABLE fencepost.lane_decision (
  decision_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL,
  node_id text,
  token bigint NOT NULL,
  at timestamptz NOT NULL
);
CREATE INDEX lane_decision_by_lane ON fencepost.lane_decision (signer, chain_id, decision_id);
