-- Fencepost's tables. Everything lives in one schema and is always named in full: no search_path, no session state, so
-- that it works behind PgBouncer and beside the tables of a host application.
--
-- No foreign keys on purpose. Each would lock the referenced row (FOR KEY SHARE) on every insert, on the hottest rows
-- there are, and protect nothing: rows are only written under the lane's lock, and nothing is deleted. A foreign key to
-- the lane would not fence either, because a takeover does not wait for FOR KEY SHARE.
--
-- Hex has a length and an alphabet, checked apart: as one pattern with a count in it, it costs ten times as much.
--
-- Columns that change often (state, counters, times) are in no index and in no index predicate: otherwise no update
-- could be a heap-only one. What is read by state is found through `live` and `outcome`, which change once.
CREATE SCHEMA IF NOT EXISTS fencepost;

-- Liveness. One small write renews every lane of an instance. In a table of its own, because a renewal must never wait
-- behind the instance's own open write.
CREATE TABLE fencepost.node_instance (
  instance_id uuid PRIMARY KEY,
  node_id text NOT NULL,
  url text NOT NULL,
  version text NOT NULL,
  mode text NOT NULL,
  started_at timestamptz NOT NULL,
  heartbeat_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  counter bigint NOT NULL DEFAULT 1,
  dead boolean NOT NULL DEFAULT false,
  CONSTRAINT node_instance_mode CHECK (mode IN ('basic', 'worker-queue'))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- Tenure and nonce cursor. The row that every write of the lane locks until COMMIT, and that a takeover must wait for.
CREATE TABLE fencepost.lane (
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  owner_instance uuid,
  token bigint NOT NULL DEFAULT 0,
  acquired_at timestamptz,
  next_nonce bigint,
  suspended boolean NOT NULL DEFAULT false,
  confirmed_total bigint NOT NULL DEFAULT 0,
  failed_total bigint NOT NULL DEFAULT 0,
  -- Led by the signer: statements name their lanes as lists, and a list of signers is what narrows.
  PRIMARY KEY (signer, chain_id),
  CONSTRAINT lane_chain_id CHECK (chain_id > 0),
  CONSTRAINT lane_signer CHECK (octet_length(signer) = 42 AND signer ~ '^0x[0-9a-f]*$'),
  CONSTRAINT lane_token CHECK (token >= 0 AND (owner_instance IS NULL OR token > 0)),
  CONSTRAINT lane_next_nonce CHECK (next_nonce >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The changing part of a caller's intent. The (state, sub_state) pairs are those of src/domain/transaction/transitions.ts.
CREATE TABLE fencepost.transaction (
  tx_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  -- False for the row that was refused because its request id belongs to another.
  owns_request boolean NOT NULL DEFAULT true,
  nonce bigint,
  state text COLLATE "C" NOT NULL,
  sub_state text COLLATE "C",
  -- False once settled and past its watch: from then on nobody resumes or loads the row.
  live boolean NOT NULL DEFAULT true,
  -- The final state, written together with live = false.
  outcome text COLLATE "C",
  history_count integer NOT NULL,
  last_event text COLLATE "C" NOT NULL,
  attempt_count integer NOT NULL DEFAULT 0,
  claim_token bigint,
  claim_ordinal integer,
  accepted_ordinal integer,
  submit_attempts integer NOT NULL DEFAULT 0,
  last_submitted_at timestamptz,
  last_error text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  confirmed_at timestamptz,
  CONSTRAINT transaction_status CHECK (
    (state || '/' || coalesce(sub_state, '-')) IN (
      'CREATED/-', 'ALLOCATED/-',
      'TRACKING/PENDING', 'TRACKING/BROADCAST', 'TRACKING/STALE', 'TRACKING/MINED', 'TRACKING/UNKNOWN_SUBMIT_RESULT',
      'CONFIRMED/-', 'CONFIRMED/REPLACED',
      'FAILED_FINAL/REVERTED', 'FAILED_FINAL/CANCELLED', 'FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY',
      'FAILED_FINAL/REJECTED', 'FAILED_FINAL/REQUEST_ID_REUSED',
      'STUCK/-'
    )
  ),
  CONSTRAINT transaction_nonce_bound CHECK (
    (nonce IS NULL) = (state = 'CREATED' OR coalesce(sub_state, '-') IN ('REJECTED', 'REQUEST_ID_REUSED'))
  ),
  CONSTRAINT transaction_nonce_range CHECK (nonce BETWEEN 0 AND 9007199254740991),
  CONSTRAINT transaction_request_id CHECK (length(request_id) BETWEEN 1 AND 255),
  CONSTRAINT transaction_outcome CHECK (
    live = (outcome IS NULL) AND (outcome IS NULL OR (outcome = state AND state IN ('CONFIRMED', 'FAILED_FINAL')))
  ),
  -- What is tracked has been signed, and only what is stored can be claimed or accepted.
  CONSTRAINT transaction_signed CHECK (state <> 'TRACKING' OR attempt_count > 0),
  CONSTRAINT transaction_claim CHECK (
    (claim_ordinal IS NULL) = (claim_token IS NULL) AND claim_ordinal BETWEEN 1 AND attempt_count
  ),
  CONSTRAINT transaction_accepted CHECK (accepted_ordinal BETWEEN 1 AND attempt_count)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

CREATE UNIQUE INDEX transaction_nonce_once ON fencepost.transaction (chain_id, signer, nonce);
-- Led by the request id, so that it also answers a look-up by request id alone.
CREATE UNIQUE INDEX transaction_request_once ON fencepost.transaction (request_id, signer, chain_id)
  WHERE owns_request AND request_id IS NOT NULL;
CREATE INDEX transaction_request_refused ON fencepost.transaction (request_id)
  WHERE NOT owns_request AND request_id IS NOT NULL;
CREATE INDEX transaction_live ON fencepost.transaction (chain_id, signer, nonce) WHERE live;
CREATE INDEX transaction_by_signer ON fencepost.transaction (signer, tx_id);
CREATE INDEX transaction_by_outcome ON fencepost.transaction (outcome, tx_id) WHERE outcome IS NOT NULL;

-- The constant part: written once, read when signing and when asked for.
CREATE TABLE fencepost.payload (
  tx_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  to_address text COLLATE "C",
  data bytea NOT NULL,
  value numeric(78, 0) NOT NULL,
  -- As the caller gave it, and as it is signed: given or estimated.
  gas bigint,
  gas_limit bigint,
  fee_type text COLLATE "C",
  gas_price numeric(78, 0),
  max_fee_per_gas numeric(78, 0),
  max_priority_fee_per_gas numeric(78, 0),
  access_list jsonb,
  metadata jsonb,
  fingerprint bytea NOT NULL,
  CONSTRAINT payload_to_address CHECK (octet_length(to_address) = 42 AND to_address ~ '^0x[0-9a-f]*$'),
  CONSTRAINT payload_data CHECK (octet_length(data) <= 131072),
  CONSTRAINT payload_value CHECK (value >= 0),
  CONSTRAINT payload_gas CHECK (gas >= 0 AND gas_limit >= 0),
  CONSTRAINT payload_fee_type CHECK (fee_type IN ('legacy', 'eip2930', 'eip1559')),
  CONSTRAINT payload_fees CHECK (gas_price >= 0 AND max_fee_per_gas >= 0 AND max_priority_fee_per_gas >= 0),
  CONSTRAINT payload_fingerprint CHECK (octet_length(fingerprint) = 32)
);

-- Signed payloads: what the network may know. Inserted before the first byte leaves.
CREATE TABLE fencepost.attempt (
  tx_id uuid NOT NULL,
  ordinal integer NOT NULL,
  chain_id bigint NOT NULL,
  tx_hash text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  gas bigint NOT NULL,
  fee_type text COLLATE "C" NOT NULL,
  gas_price numeric(78, 0),
  max_fee_per_gas numeric(78, 0),
  max_priority_fee_per_gas numeric(78, 0),
  raw_transaction bytea NOT NULL,
  created_at timestamptz NOT NULL,
  first_sent_at timestamptz,
  PRIMARY KEY (tx_id, ordinal),
  CONSTRAINT attempt_ordinal CHECK (ordinal >= 1),
  CONSTRAINT attempt_tx_hash CHECK (octet_length(tx_hash) = 66 AND tx_hash ~ '^0x[0-9a-f]*$'),
  CONSTRAINT attempt_kind CHECK (kind IN ('initial', 'reprice', 'cancel', 'replace', 'placeholder', 'external')),
  CONSTRAINT attempt_gas CHECK (gas >= 0),
  CONSTRAINT attempt_fees CHECK (
    CASE fee_type
      WHEN 'eip1559' THEN gas_price IS NULL AND max_fee_per_gas >= 0 AND max_priority_fee_per_gas >= 0
        AND max_fee_per_gas IS NOT NULL AND max_priority_fee_per_gas IS NOT NULL
      WHEN 'legacy' THEN gas_price IS NOT NULL AND gas_price >= 0 AND max_fee_per_gas IS NULL AND max_priority_fee_per_gas IS NULL
      WHEN 'eip2930' THEN gas_price IS NOT NULL AND gas_price >= 0 AND max_fee_per_gas IS NULL AND max_priority_fee_per_gas IS NULL
      ELSE false
    END
  )
);
CREATE UNIQUE INDEX attempt_tx_hash_once ON fencepost.attempt (tx_hash, chain_id);

-- The receipt on the canonical chain, as far as we know; deleted when its block leaves that chain.
CREATE TABLE fencepost.receipt (
  tx_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  tx_hash text COLLATE "C" NOT NULL,
  block_number bigint NOT NULL,
  block_hash text COLLATE "C" NOT NULL,
  transaction_index integer NOT NULL,
  status text COLLATE "C" NOT NULL,
  gas_used bigint NOT NULL,
  effective_gas_price numeric(78, 0),
  contract_address text COLLATE "C",
  CONSTRAINT receipt_tx_hash CHECK (octet_length(tx_hash) = 66 AND tx_hash ~ '^0x[0-9a-f]*$'),
  CONSTRAINT receipt_block CHECK (block_number >= 0 AND octet_length(block_hash) = 66 AND block_hash ~ '^0x[0-9a-f]*$'),
  CONSTRAINT receipt_status CHECK (status IN ('success', 'reverted')),
  CONSTRAINT receipt_contract_address CHECK (octet_length(contract_address) = 42 AND contract_address ~ '^0x[0-9a-f]*$')
);

-- Canonical blocks, once per chain and not once per transaction.
CREATE TABLE fencepost.confirmation (
  chain_id bigint NOT NULL,
  block_number bigint NOT NULL,
  block_hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (chain_id, block_number),
  CONSTRAINT confirmation_block CHECK (block_number >= 0 AND octet_length(block_hash) = 66 AND block_hash ~ '^0x[0-9a-f]*$')
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- What happened to a transaction, when, by whom and why. An event repeated in a row is one row with a count.
CREATE TABLE fencepost.history (
  tx_id uuid NOT NULL,
  ordinal integer NOT NULL,
  chain_id bigint NOT NULL,
  event text COLLATE "C" NOT NULL,
  from_state text COLLATE "C",
  state text COLLATE "C" NOT NULL,
  sub_state text COLLATE "C",
  node_id text,
  token bigint,
  reason text,
  count integer NOT NULL DEFAULT 1,
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (tx_id, ordinal),
  CONSTRAINT history_ordinal CHECK (ordinal >= 1 AND count >= 1),
  CONSTRAINT history_transition CHECK (
    (event || ' ' || coalesce(from_state, '-') || ' ' || state || '/' || coalesce(sub_state, '-')) IN (
      'accept - CREATED/-',
      'allocate - ALLOCATED/-',
      'allocate CREATED ALLOCATED/-',
      'refuse - FAILED_FINAL/REJECTED',
      'refuse CREATED FAILED_FINAL/REJECTED',
      'refuseReusedRequestId - FAILED_FINAL/REQUEST_ID_REUSED',
      'refuseReusedRequestId CREATED FAILED_FINAL/REQUEST_ID_REUSED',
      'sign ALLOCATED TRACKING/PENDING',
      'broadcast TRACKING TRACKING/BROADCAST',
      'resubmit TRACKING TRACKING/PENDING',
      'resubmit TRACKING TRACKING/BROADCAST',
      'resubmit TRACKING TRACKING/STALE',
      'resubmit TRACKING TRACKING/MINED',
      'resubmit TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'resubmit STUCK STUCK/-',
      'submitFailed TRACKING TRACKING/PENDING',
      'submitFailed TRACKING TRACKING/BROADCAST',
      'submitFailed TRACKING TRACKING/STALE',
      'submitFailed TRACKING TRACKING/MINED',
      'submitFailed TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'submitFailed STUCK STUCK/-',
      'mine TRACKING TRACKING/MINED',
      'mine STUCK TRACKING/MINED',
      'withdraw TRACKING TRACKING/PENDING',
      'confirm TRACKING CONFIRMED/-',
      'revert TRACKING FAILED_FINAL/REVERTED',
      'reorg CONFIRMED TRACKING/PENDING',
      'reorg FAILED_FINAL TRACKING/PENDING'
    )
  )
) WITH (fillfactor = 90);

-- The ordered feed. Numbers come from the counter row below, so that commit order is sequence order, without gaps.
CREATE TABLE fencepost.completion (
  seq bigint PRIMARY KEY,
  epoch integer NOT NULL,
  tx_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  nonce bigint,
  state text COLLATE "C" NOT NULL,
  sub_state text COLLATE "C",
  settled boolean NOT NULL,
  tx_hash text COLLATE "C",
  at timestamptz NOT NULL,
  CONSTRAINT completion_state CHECK (state IN ('CONFIRMED', 'FAILED_FINAL', 'STUCK', 'REORGED')),
  -- STUCK and REORGED may still execute: do not pay again.
  CONSTRAINT completion_settled CHECK (settled = (state IN ('CONFIRMED', 'FAILED_FINAL'))),
  CONSTRAINT completion_tx_hash CHECK (octet_length(tx_hash) = 66 AND tx_hash ~ '^0x[0-9a-f]*$')
);

CREATE TABLE fencepost.feed (
  only_row boolean PRIMARY KEY DEFAULT true,
  epoch integer NOT NULL,
  last_seq bigint NOT NULL,
  truncated_through bigint NOT NULL,
  epoch_starts_after bigint NOT NULL,
  CONSTRAINT feed_only_row CHECK (only_row),
  CONSTRAINT feed_order CHECK (
    epoch >= 1 AND epoch_starts_after >= 0 AND truncated_through BETWEEN 0 AND last_seq AND epoch_starts_after <= last_seq
  )
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO fencepost.feed (epoch, last_seq, truncated_through, epoch_starts_after) VALUES (1, 0, 0, 0);

-- Intents that a caller wrote inside a transaction of its own: the only unfenced write. Shares no unique index with the
-- owner's tables, so that an open caller can never make the writer wait.
CREATE TABLE fencepost.intake (
  intake_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tx_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  to_address text COLLATE "C",
  data bytea NOT NULL,
  value numeric(78, 0) NOT NULL,
  gas bigint,
  fee_type text COLLATE "C",
  gas_price numeric(78, 0),
  max_fee_per_gas numeric(78, 0),
  max_priority_fee_per_gas numeric(78, 0),
  access_list jsonb,
  metadata jsonb,
  fingerprint bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Set where the request id already had a transaction with the same payload: this id is another name of that one.
  alias_of uuid,
  CONSTRAINT intake_chain_id CHECK (chain_id > 0),
  CONSTRAINT intake_signer CHECK (octet_length(signer) = 42 AND signer ~ '^0x[0-9a-f]*$'),
  CONSTRAINT intake_request_id CHECK (length(request_id) BETWEEN 1 AND 255),
  CONSTRAINT intake_to_address CHECK (octet_length(to_address) = 42 AND to_address ~ '^0x[0-9a-f]*$'),
  CONSTRAINT intake_data CHECK (octet_length(data) <= 131072),
  CONSTRAINT intake_value CHECK (value >= 0),
  CONSTRAINT intake_gas CHECK (gas >= 0),
  CONSTRAINT intake_fee_type CHECK (fee_type IN ('legacy', 'eip2930', 'eip1559')),
  CONSTRAINT intake_fees CHECK (gas_price >= 0 AND max_fee_per_gas >= 0 AND max_priority_fee_per_gas >= 0),
  CONSTRAINT intake_fingerprint CHECK (octet_length(fingerprint) = 32)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE UNIQUE INDEX intake_tx_id ON fencepost.intake (tx_id);
CREATE INDEX intake_waiting ON fencepost.intake (signer, chain_id, intake_id) WHERE alias_of IS NULL;
CREATE INDEX intake_request ON fencepost.intake (request_id) WHERE request_id IS NOT NULL;

-- Which history of the database each registration saw. Another system, another timeline or a position behind the
-- highest one known means that commits may be lost: the feed then begins a new epoch.
CREATE TABLE fencepost.database_history (
  ordinal integer PRIMARY KEY,
  system_identifier text NOT NULL,
  timeline text NOT NULL,
  wal_position numeric NOT NULL,
  epoch integer NOT NULL,
  seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Proof of commit. Every writing transaction of a process puts a fresh marker into a row that no other transaction of
-- its time uses; whoever lost the answer to COMMIT waits for that row and looks. Not `pg_xact_status`: a crash may lose
-- the transaction and give its number to another one, which then commits.
CREATE TABLE fencepost.commit_marker (
  store_id uuid NOT NULL,
  slot integer NOT NULL,
  marker uuid NOT NULL,
  written_at timestamptz NOT NULL,
  PRIMARY KEY (store_id, slot)
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Ends a transaction whose statement touched another number of rows than was planned under the lane's lock. COMMIT is
-- already on the wire by then, so only the server can still refuse.
CREATE FUNCTION fencepost.require_rows(actual bigint, planned bigint, what text) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  IF actual IS DISTINCT FROM planned THEN
    RAISE EXCEPTION '%: % rows where % were planned', what, actual, planned USING ERRCODE = 'FP001';
  END IF;
  RETURN actual;
END
$$;
