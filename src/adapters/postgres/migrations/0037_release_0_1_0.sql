-- works with: 0036_private_endpoints.sql
-- stands for: 0036_private_endpoints.sql 526982e27bae15d75502faef23ca4cc1e469a7dcb8d60f9d288672ff0b573f67
--
-- The tables of release 0.1.0. A database that has every migration up to 0036_private_endpoints.sql has exactly these: the file
-- is recorded there and not run. An older database is refused (src/adapters/postgres/schema/migrate.ts).
--
-- Everything is in one schema and named in full: no search_path and no session state, so that it works behind PgBouncer and
-- beside the tables of a host application.
--
-- No foreign keys on the way of a transaction. Each would lock the referenced row (FOR KEY SHARE) on every insert, on the
-- hottest rows, and protect nothing: rows are written under the lane's lock only. A foreign key to the lane would not fence
-- either, because a takeover does not wait for FOR KEY SHARE.
--
-- Hex has two checks, length and alphabet: one pattern with a count costs ten times as much.
--
-- Columns that change often (state, counters, times) are in no index and in no index predicate: an update of them could not be
-- heap-only. Rows are found by `live` and `outcome`, which change once.

-- Liveness: one small write renews every lane of an instance. In a table of its own, because a renewal must not wait
-- behind an open write of the same instance.
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
  -- What the instance can serve: advice for placing lanes and for finding an owner. No write depends on it.
  chains bigint[] NOT NULL DEFAULT '{}',
  signers text[] COLLATE "C" NOT NULL DEFAULT '{}',
  draining boolean NOT NULL DEFAULT false,
  -- Newest migration that the node knows; null: its version did not record it. A migration that a running node
  -- cannot follow is refused, and names that node.
  knows_migration text COLLATE "C",
  -- Key of the advisory lock that a session of the instance holds while its process lives; null: it holds none, and
  -- only the heartbeat shows that it lives.
  session_lock integer,
  -- The instance lost its lanes because its heartbeat stopped, and leaves them to others for a while.
  stands_back boolean NOT NULL DEFAULT false,
  -- Nodes authenticate to each other by key pairs. The private half never leaves the process.
  public_key text,
  key_proof text,
  -- Signers whose key the instance has and failed to sign with; null: its version does not report them.
  keys_away text[] COLLATE "C",
  CONSTRAINT node_instance_mode CHECK (mode IN ('basic', 'worker-queue'))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- Read by a statement of its own, behind the table lock that an INSERT needs and a policy change holds: no lane starts with
-- the stamp of an outdated document.
CREATE FUNCTION fencepost.policy_stamp() RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT p.stamp FROM fencepost.policy AS p WHERE p.only_row);
END
$$;

-- The policy document in force, for all nodes. `stamp` is random for each change: versions can repeat after a failover that
-- lost one. `change_id` null: no document was applied yet.
CREATE TABLE fencepost.policy (
  only_row boolean PRIMARY KEY DEFAULT true,
  version bigint NOT NULL,
  stamp uuid NOT NULL,
  change_id bigint,
  CONSTRAINT policy_only_row CHECK (only_row),
  CONSTRAINT policy_none CHECK ((version = 0) = (change_id IS NULL))
);
INSERT INTO fencepost.policy (version, stamp) VALUES (0, '00000000-0000-0000-0000-000000000000');

-- Lease and nonce cursor. Every write of the lane locks this row until COMMIT, and a takeover waits for it.
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
  -- Epoch of the feed in which the lane was last compared with the chain. After the database lost commits a new epoch
  -- begins, and the lane must be compared again before it acts.
  reconciled_epoch integer NOT NULL DEFAULT 1,
  -- Who suspended the lane: an operator, or the loss of commits.
  suspended_by text COLLATE "C",
  -- Live transactions by state. Every write locks this row anyway; rows of their own cost six more row versions for each
  -- transaction.
  live_allocated bigint NOT NULL DEFAULT 0,
  live_tracking bigint NOT NULL DEFAULT 0,
  live_stuck bigint NOT NULL DEFAULT 0,
  live_confirmed bigint NOT NULL DEFAULT 0,
  live_failed bigint NOT NULL DEFAULT 0,
  -- Use of the policies' limits by this signer, in wei, in the hour `use_hour` and in its day; null: nothing was counted.
  use_hour timestamptz,
  hour_value numeric(78, 0),
  hour_cost numeric(78, 0),
  day_value numeric(78, 0),
  day_cost numeric(78, 0),
  -- One above the highest nonce of a transaction that retention removed; null: none was removed. Every nonce below it was
  -- mined beyond any reorg, and a request id of the lane may exist in `spent_request` only.
  departed_below bigint,
  -- Policy document that a commit must judge by, compared by the statement that locks the lane. A policy change writes its
  -- stamp to every lane (src/adapters/postgres/commit/policies.ts).
  policy_stamp uuid NOT NULL DEFAULT fencepost.policy_stamp(),
  -- The signer first: statements pass lanes as lists, and a list of signers is selective.
  PRIMARY KEY (signer, chain_id),
  CONSTRAINT lane_chain_id CHECK (chain_id > 0),
  CONSTRAINT lane_signer CHECK (octet_length(signer) = 42 AND signer ~ '^0x[0-9a-f]*$'),
  CONSTRAINT lane_token CHECK (token >= 0 AND (owner_instance IS NULL OR token > 0)),
  CONSTRAINT lane_next_nonce CHECK (next_nonce >= 0),
  CONSTRAINT lane_suspended_by CHECK (suspended_by IN ('OPERATOR', 'HISTORY') AND suspended OR suspended_by IS NULL),
  CONSTRAINT lane_use CHECK (num_nulls(use_hour, hour_value, hour_cost, day_value, day_cost) IN (0, 5)),
  CONSTRAINT lane_departed_below CHECK (departed_below >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- What needs a person. Each of these holds the exceptional rows only, so that an ordinary commit stays a heap-only update.
CREATE INDEX lane_troubled ON fencepost.lane (signer, chain_id) WHERE suspended OR live_stuck > 0;

-- The changing part of a caller's intent. The (state, sub_state) pairs are those of src/domain/transaction/transitions.ts.
CREATE TABLE fencepost.transaction (
  tx_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  -- False: the row was refused because its request id belongs to another transaction.
  owns_request boolean NOT NULL DEFAULT true,
  nonce bigint,
  state text COLLATE "C" NOT NULL,
  sub_state text COLLATE "C",
  -- False once the transaction is settled and its watch is over: no owner loads the row again.
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
  -- Steps of an ordinary life (allocate, sign, broadcast, mine, confirm under one term): one time each and who allocated.
  -- As rows of `step` they were four of fifteen row versions. Every other step is a row of `step`.
  allocated_by text,
  allocated_under bigint,
  signed_at timestamptz,
  broadcast_at timestamptz,
  mined_at timestamptz,
  settled_at timestamptz,
  -- Name of the API key that created it; null: no key was required.
  owner text COLLATE "C",
  -- The caller's deadline; when its cancellation began because the deadline passed; since when an operator holds it.
  valid_until timestamptz,
  expired_at timestamptz,
  held_since timestamptz,
  -- The caller named its nonce: the transaction is never moved to another one.
  pinned boolean NOT NULL DEFAULT false,
  CONSTRAINT transaction_nonce_range CHECK (nonce BETWEEN 0 AND 9007199254740991),
  CONSTRAINT transaction_request_id CHECK (length(request_id) BETWEEN 1 AND 255),
  CONSTRAINT transaction_outcome CHECK (
    live = (outcome IS NULL) AND (outcome IS NULL OR (outcome = state AND state IN ('CONFIRMED', 'FAILED_FINAL')))
  ),
  -- A tracked transaction has been signed; only a stored attempt can be claimed or accepted.
  CONSTRAINT transaction_signed CHECK (state <> 'TRACKING' OR attempt_count > 0),
  CONSTRAINT transaction_claim CHECK (
    (claim_ordinal IS NULL) = (claim_token IS NULL) AND claim_ordinal BETWEEN 1 AND attempt_count
  ),
  CONSTRAINT transaction_accepted CHECK (accepted_ordinal BETWEEN 1 AND attempt_count),
  CONSTRAINT transaction_steps CHECK (
    num_nulls(allocated_by, allocated_under) = 0
      OR num_nonnulls(allocated_by, allocated_under, signed_at, broadcast_at, mined_at, settled_at) = 0
  ),
  CONSTRAINT transaction_status CHECK (
    state || '/' || coalesce(sub_state, '-') IN (
      'CREATED/-',
      'CREATED/AWAITING_APPROVAL',
      'ALLOCATED/-',
      'TRACKING/PENDING',
      'TRACKING/BROADCAST',
      'TRACKING/STALE',
      'TRACKING/MINED',
      'TRACKING/UNKNOWN_SUBMIT_RESULT',
      'CONFIRMED/-',
      'CONFIRMED/REPLACED',
      'FAILED_FINAL/REVERTED',
      'FAILED_FINAL/CANCELLED',
      'FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY',
      'FAILED_FINAL/REJECTED',
      'FAILED_FINAL/REQUEST_ID_REUSED',
      'FAILED_FINAL/EXPIRED',
      'STUCK/-'
    )
  ),
  CONSTRAINT transaction_nonce_bound CHECK (
    coalesce(sub_state, '-') IN ('CANCELLED', 'EXPIRED')
    OR (nonce IS NULL) = (state = 'CREATED' OR coalesce(sub_state, '-') IN ('REJECTED', 'REQUEST_ID_REUSED'))
  ),
  CONSTRAINT transaction_expired CHECK (expired_at IS NULL OR expired_at >= valid_until)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE UNIQUE INDEX transaction_nonce_once ON fencepost.transaction (chain_id, signer, nonce);
-- The request id first, so that it also answers a look-up by request id alone.
CREATE UNIQUE INDEX transaction_request_once ON fencepost.transaction (request_id, signer, chain_id)
  WHERE owns_request AND request_id IS NOT NULL;
CREATE INDEX transaction_request_refused ON fencepost.transaction (request_id)
  WHERE NOT owns_request AND request_id IS NOT NULL;
CREATE INDEX transaction_live ON fencepost.transaction (chain_id, signer, nonce) WHERE live;
-- Lists, in the order of creation. No index names `state`: it changes at every step, and every step would rewrite the index.
CREATE INDEX transaction_live_of_chain ON fencepost.transaction (chain_id, tx_id) WHERE live;
-- One number in front of the id instead of outcome, chain and signer: 36 bytes an entry instead of 52 to 100. PostgreSQL before
-- 18 ends an index walk by the first column alone. Statements compare the columns too, because two lanes may share a number.
CREATE INDEX transaction_over_on_chain ON fencepost.transaction (hashtextextended(outcome, chain_id), tx_id)
  WHERE outcome IS NOT NULL;
CREATE INDEX transaction_over_on_lane ON fencepost.transaction (hashtextextended(outcome || signer, chain_id), tx_id)
  WHERE outcome IS NOT NULL;
CREATE INDEX transaction_live_on_lane ON fencepost.transaction (hashtextextended(signer, chain_id), tx_id) WHERE live;
-- Deadlines of live transactions. Most have none and are not in it.
CREATE INDEX transaction_expiring ON fencepost.transaction (chain_id, signer, valid_until)
  WHERE live AND valid_until IS NOT NULL;
CREATE INDEX transaction_held ON fencepost.transaction (chain_id, signer, nonce) WHERE live AND held_since IS NOT NULL;

-- The constant part of a caller's intent: written once, read for signing and for answers.
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
  -- Where earlier versions kept the first step of the history; null in rows of this version.
  allocated_by text,
  allocated_under bigint,
  allocated_at timestamptz,
  CONSTRAINT payload_to_address CHECK (octet_length(to_address) = 42 AND to_address ~ '^0x[0-9a-f]*$'),
  CONSTRAINT payload_data CHECK (octet_length(data) <= 131072),
  CONSTRAINT payload_value CHECK (value >= 0),
  CONSTRAINT payload_gas CHECK (gas >= 0 AND gas_limit >= 0),
  CONSTRAINT payload_fee_type CHECK (fee_type IN ('legacy', 'eip2930', 'eip1559')),
  CONSTRAINT payload_fees CHECK (gas_price >= 0 AND max_fee_per_gas >= 0 AND max_priority_fee_per_gas >= 0),
  CONSTRAINT payload_fingerprint CHECK (octet_length(fingerprint) = 32),
  CONSTRAINT payload_allocated CHECK (num_nulls(allocated_by, allocated_under, allocated_at) IN (0, 3))
);

-- A payload that an operator or a hook put in the place of one that is not signed yet. The caller's own stays in `payload`.
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

-- Signed payloads that the network may know. Inserted before the first byte leaves.
CREATE TABLE fencepost.attempt (
  tx_id uuid NOT NULL,
  ordinal integer NOT NULL,
  chain_id bigint NOT NULL,
  tx_hash text COLLATE "C",
  kind text COLLATE "C" NOT NULL,
  gas bigint NOT NULL,
  fee_type text COLLATE "C" NOT NULL,
  gas_price numeric(78, 0),
  max_fee_per_gas numeric(78, 0),
  max_priority_fee_per_gas numeric(78, 0),
  raw_transaction bytea,
  created_at timestamptz NOT NULL,
  first_sent_at timestamptz,
  -- A transaction of somebody else at our nonce: followed like any other, never sent.
  is_foreign boolean NOT NULL DEFAULT false,
  -- The Ethereum node holds the key: there are no bytes, and no hash before the node has answered.
  node_signed boolean NOT NULL DEFAULT false,
  -- Sent to private endpoints only (`send: "only"`) until an operator or `publicAfter` discloses it. Written with the
  -- claim, so that the lane's next owner keeps to it.
  is_private boolean NOT NULL DEFAULT false,
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
  ),
  CONSTRAINT attempt_foreign CHECK (NOT is_foreign OR (kind = 'external' AND first_sent_at IS NULL)),
  CONSTRAINT attempt_bytes CHECK (raw_transaction IS NOT NULL OR kind = 'external' OR node_signed),
  CONSTRAINT attempt_hash CHECK (tx_hash IS NOT NULL OR node_signed)
);
CREATE UNIQUE INDEX attempt_tx_hash_once ON fencepost.attempt (tx_hash, chain_id);

-- The receipt on the canonical chain, as far as known; deleted when its block leaves that chain.
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
  -- Wei paid beside gas × price, for blobs or to a rollup, and whether it may be more; null: none.
  beside_gas numeric(78, 0),
  beside_gas_unsure boolean,
  CONSTRAINT receipt_tx_hash CHECK (octet_length(tx_hash) = 66 AND tx_hash ~ '^0x[0-9a-f]*$'),
  CONSTRAINT receipt_block CHECK (block_number >= 0 AND octet_length(block_hash) = 66 AND block_hash ~ '^0x[0-9a-f]*$'),
  CONSTRAINT receipt_status CHECK (status IN ('success', 'reverted')),
  CONSTRAINT receipt_contract_address CHECK (octet_length(contract_address) = 42 AND contract_address ~ '^0x[0-9a-f]*$')
);

-- Canonical blocks, once per chain instead of once per transaction.
CREATE TABLE fencepost.confirmation (
  chain_id bigint NOT NULL,
  block_number bigint NOT NULL,
  block_hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (chain_id, block_number),
  CONSTRAINT confirmation_block CHECK (block_number >= 0 AND octet_length(block_hash) = 66 AND block_hash ~ '^0x[0-9a-f]*$')
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- Steps of a transaction's history that are not columns of `transaction`. A repeated event is one row with a count.
CREATE TABLE fencepost.step (
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
  -- Who decided the step: an operator's key, a hook or a policy; null: the node itself.
  actor text,
  audit jsonb,
  CONSTRAINT history_pkey PRIMARY KEY (tx_id, ordinal),
  CONSTRAINT history_ordinal CHECK (ordinal >= 1 AND count >= 1),
  CONSTRAINT history_transition CHECK (
    event || ' ' || coalesce(from_state, '-') || ' ' || state || '/' || coalesce(sub_state, '-') IN (
      'accept - CREATED/-',
      'allocate - ALLOCATED/-',
      'allocate CREATED ALLOCATED/-',
      'refuse - FAILED_FINAL/REJECTED',
      'refuse CREATED FAILED_FINAL/REJECTED',
      'refuseReusedRequestId - FAILED_FINAL/REQUEST_ID_REUSED',
      'refuseReusedRequestId CREATED FAILED_FINAL/REQUEST_ID_REUSED',
      'await CREATED CREATED/AWAITING_APPROVAL',
      'approve CREATED CREATED/-',
      'reject CREATED FAILED_FINAL/REJECTED',
      'expire CREATED FAILED_FINAL/EXPIRED',
      'expire ALLOCATED FAILED_FINAL/EXPIRED',
      'callOff CREATED FAILED_FINAL/CANCELLED',
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
      'stale TRACKING TRACKING/STALE',
      'reprice TRACKING TRACKING/PENDING',
      'reprice STUCK TRACKING/PENDING',
      'cancel TRACKING TRACKING/PENDING',
      'cancel STUCK TRACKING/PENDING',
      'replace TRACKING TRACKING/PENDING',
      'replace STUCK TRACKING/PENDING',
      'placeholder TRACKING TRACKING/PENDING',
      'placeholder STUCK TRACKING/PENDING',
      'amend ALLOCATED ALLOCATED/-',
      'decide ALLOCATED ALLOCATED/-',
      'decide TRACKING TRACKING/PENDING',
      'decide TRACKING TRACKING/BROADCAST',
      'decide TRACKING TRACKING/STALE',
      'decide TRACKING TRACKING/MINED',
      'decide TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'decide STUCK STUCK/-',
      'hold CREATED CREATED/-',
      'hold CREATED CREATED/AWAITING_APPROVAL',
      'hold ALLOCATED ALLOCATED/-',
      'hold TRACKING TRACKING/PENDING',
      'hold TRACKING TRACKING/BROADCAST',
      'hold TRACKING TRACKING/STALE',
      'hold TRACKING TRACKING/MINED',
      'hold TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'hold STUCK STUCK/-',
      'unhold CREATED CREATED/-',
      'unhold CREATED CREATED/AWAITING_APPROVAL',
      'unhold ALLOCATED ALLOCATED/-',
      'unhold TRACKING TRACKING/PENDING',
      'unhold TRACKING TRACKING/BROADCAST',
      'unhold TRACKING TRACKING/STALE',
      'unhold TRACKING TRACKING/MINED',
      'unhold TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'unhold STUCK STUCK/-',
      'stick TRACKING STUCK/-',
      'unstick STUCK TRACKING/PENDING',
      'shiftDown ALLOCATED ALLOCATED/-',
      'giveUp ALLOCATED FAILED_FINAL/REJECTED',
      'loseSight TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'adopt TRACKING TRACKING/BROADCAST',
      'sendAnew TRACKING TRACKING/PENDING',
      'mine TRACKING TRACKING/MINED',
      'mine STUCK TRACKING/MINED',
      'withdraw TRACKING TRACKING/PENDING',
      'confirm TRACKING CONFIRMED/-',
      'revert TRACKING FAILED_FINAL/REVERTED',
      'confirmReplacement TRACKING CONFIRMED/REPLACED',
      'confirmCancel TRACKING FAILED_FINAL/CANCELLED',
      'confirmExpiry TRACKING FAILED_FINAL/EXPIRED',
      'loseNonce TRACKING FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY',
      'requeue TRACKING ALLOCATED/-',
      'reorg CONFIRMED TRACKING/PENDING',
      'reorg FAILED_FINAL TRACKING/PENDING'
    )
  )
) WITH (fillfactor = 90);

-- The whole history of every transaction, from all places where steps are kept.
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

-- Name of `history` in earlier versions.
CREATE VIEW fencepost.every_step AS SELECT * FROM fencepost.history;

-- A step written to the view becomes a row; a repeated one that is a column of `transaction` becomes a row first.
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

-- `signer >= ''` is always true, and lets the planner read lanes by their key.
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

-- Keeps the counts of `lane` for writers that do not keep them themselves: people with a console, and nodes of earlier
-- versions. Adds up by lane and state first, because one statement may write a million rows.
CREATE FUNCTION fencepost.keep_live_counts() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- The ordered feed. Numbers come from the counter row of `feed`: commit order is sequence order, without gaps.
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

-- Intents that a caller wrote in its own database transaction: the only unfenced write. No unique index is shared with the
-- owner's tables, so an open caller never blocks the writer.
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
  -- The request id already had a transaction with the same payload: this id is another name of that transaction.
  alias_of uuid,
  owner text COLLATE "C",
  -- The policy rule that requires approval by a second API key, until when, and since when it is approved. The intent has
  -- no nonce yet but owns its request id.
  awaits text COLLATE "C",
  expires_at timestamptz,
  approved_at timestamptz,
  -- The caller allows call data to a receiver without code; checked when the row gets its nonce.
  allow_no_code boolean NOT NULL DEFAULT false,
  -- As on `transaction`, before there is a nonce; `holds` counts hold and unhold, which are steps of the history.
  valid_until timestamptz,
  held_since timestamptz,
  holds integer NOT NULL DEFAULT 0,
  -- Forwarded by a node whose caller has no answer yet: an owner that refuses it removes the row and writes `declined`.
  unanswered boolean NOT NULL DEFAULT false,
  CONSTRAINT intake_chain_id CHECK (chain_id > 0),
  CONSTRAINT intake_signer CHECK (octet_length(signer) = 42 AND signer ~ '^0x[0-9a-f]*$'),
  CONSTRAINT intake_request_id CHECK (length(request_id) BETWEEN 1 AND 255),
  CONSTRAINT intake_to_address CHECK (octet_length(to_address) = 42 AND to_address ~ '^0x[0-9a-f]*$'),
  CONSTRAINT intake_data CHECK (octet_length(data) <= 131072),
  CONSTRAINT intake_value CHECK (value >= 0),
  CONSTRAINT intake_gas CHECK (gas >= 0),
  CONSTRAINT intake_fee_type CHECK (fee_type IN ('legacy', 'eip2930', 'eip1559')),
  CONSTRAINT intake_fees CHECK (gas_price >= 0 AND max_fee_per_gas >= 0 AND max_priority_fee_per_gas >= 0),
  CONSTRAINT intake_fingerprint CHECK (octet_length(fingerprint) = 32),
  CONSTRAINT intake_awaits CHECK ((awaits IS NULL) = (expires_at IS NULL) AND (approved_at IS NULL OR awaits IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE UNIQUE INDEX intake_tx_id ON fencepost.intake (tx_id);
CREATE INDEX intake_waiting ON fencepost.intake (signer, chain_id, intake_id) WHERE alias_of IS NULL;
CREATE INDEX intake_request ON fencepost.intake (request_id) WHERE request_id IS NOT NULL;
-- Not a partial index: the table is mostly empty, and a plan made then would use it for every query.
CREATE INDEX intake_on_chain ON fencepost.intake ((CASE WHEN alias_of IS NULL THEN chain_id END), tx_id);
CREATE INDEX intake_on_lane
  ON fencepost.intake ((CASE WHEN alias_of IS NULL THEN hashtextextended(signer, chain_id) END), tx_id);
CREATE UNIQUE INDEX intake_awaited_request ON fencepost.intake (request_id, signer, chain_id)
  WHERE awaits IS NOT NULL AND alias_of IS NULL AND request_id IS NOT NULL;
CREATE INDEX intake_awaiting ON fencepost.intake (intake_id)
  WHERE awaits IS NOT NULL AND approved_at IS NULL AND alias_of IS NULL;

-- Why a forwarded intent was removed, for the node that forwarded it. Text, because jsonb holds no NUL, which a revert reason
-- may contain.
CREATE TABLE fencepost.declined (
  tx_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  problem text NOT NULL,
  at timestamptz NOT NULL
);
CREATE INDEX declined_at ON fencepost.declined (at);

-- Requests for a lane's owner that has no address, because it is embedded in another process. The owner carries one out under
-- its fence and writes the answer here. Body and answer are text, because jsonb holds no NUL. Nothing is begun after `until`.
CREATE TABLE fencepost.left_request (
  left_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  action text NOT NULL,
  body text NOT NULL,
  owner text COLLATE "C",
  repeatable boolean NOT NULL,
  until timestamptz NOT NULL,
  begun_by uuid,
  answer text
);
CREATE INDEX left_request_until ON fencepost.left_request (until);

-- Nonces kept for callers that sign themselves. Written under the lane's lock, like `hole`: a nonce is reserved, free or
-- taken, never two of them.
CREATE TABLE fencepost.reservation (
  reservation_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  nonce bigint NOT NULL,
  request_id text COLLATE "C",
  state text COLLATE "C" NOT NULL DEFAULT 'RESERVED',
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- The caller's transaction, or the one that closed the hole after an expiry.
  tx_id uuid,
  owner text COLLATE "C",
  CONSTRAINT reservation_nonce CHECK (nonce BETWEEN 0 AND 9007199254740991),
  CONSTRAINT reservation_request_id CHECK (length(request_id) BETWEEN 1 AND 255),
  CONSTRAINT reservation_state CHECK (
    CASE state
      WHEN 'RESERVED' THEN tx_id IS NULL
      WHEN 'RELEASED' THEN tx_id IS NULL
      WHEN 'SUBMITTED' THEN tx_id IS NOT NULL
      WHEN 'USED' THEN tx_id IS NOT NULL
      ELSE state = 'EXPIRED'
    END
  )
) WITH (fillfactor = 70);
-- Only a released nonce may be reserved again.
CREATE UNIQUE INDEX reservation_nonce_once ON fencepost.reservation (chain_id, signer, nonce) WHERE state <> 'RELEASED';
CREATE UNIQUE INDEX reservation_request_once ON fencepost.reservation (request_id, signer, chain_id)
  WHERE request_id IS NOT NULL;
CREATE INDEX reservation_open ON fencepost.reservation (signer, chain_id) WHERE state = 'RESERVED';

-- Nonces below the cursor that nothing holds.
CREATE TABLE fencepost.hole (
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  nonce bigint NOT NULL,
  why text COLLATE "C" NOT NULL,
  detail text NOT NULL,
  reservation_id uuid,
  since timestamptz NOT NULL,
  -- The expired reservation's owner and time to live: its transaction is searched for during as long again.
  owner text COLLATE "C",
  ttl_ms bigint,
  PRIMARY KEY (signer, chain_id, nonce),
  CONSTRAINT hole_nonce CHECK (nonce BETWEEN 0 AND 9007199254740991),
  CONSTRAINT hole_why CHECK (why IN ('released', 'givenUp', 'shiftedDown', 'expired')),
  CONSTRAINT hole_reservation CHECK (why NOT IN ('released', 'expired') OR reservation_id IS NOT NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Placeholders that a lane put at nonces of expired reservations by itself. Their number per hour is limited, also across
-- owners; rows of earlier hours are removed.
CREATE TABLE fencepost.reservation_repair (
  signer text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  tx_id uuid NOT NULL,
  repaired_at timestamptz NOT NULL,
  PRIMARY KEY (signer, chain_id, tx_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Lower nonces of the lane were allocated in a database history that may have lost commits since. Written with each new
-- epoch; a lane without a row has seen one epoch only.
CREATE TABLE fencepost.epoch_floor (
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  next_nonce bigint NOT NULL,
  PRIMARY KEY (signer, chain_id)
);

-- The lane that a pool chose for a request, written with the nonce: a second request with the same id finds this row, or waits
-- for it, and takes no nonce. Rows are inserted in the order of the constraint's columns, so that two commits cannot deadlock.
CREATE TABLE fencepost.pool_choice (
  tx_id uuid PRIMARY KEY,
  request_id text COLLATE "C",
  pool text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  CONSTRAINT pool_choice_request UNIQUE (request_id, pool, chain_id)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);

-- Digests of request ids whose transactions retention removed: of the lane, and of the pool if one was asked.
CREATE TABLE fencepost.spent_request (
  digest bytea PRIMARY KEY,
  chain_id bigint NOT NULL,
  left_at timestamptz NOT NULL,
  CONSTRAINT spent_request_digest CHECK (octet_length(digest) = 32)
);
CREATE INDEX spent_request_left_at ON fencepost.spent_request (left_at);

-- Digest of a request id whose transaction was removed. `scope` is the signer, or 'pool ' and the pool's name; its length
-- precedes it, so that no two requests have the same text.
CREATE FUNCTION fencepost.request_digest(chain_id bigint, scope text, request_id text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(chain_id::text || ' ' || octet_length(scope)::text || ' ' || scope || ' ' || request_id, 'UTF8'))
$$;

-- Operators' actions that were carried out, by Idempotency-Key: written in the same transaction, so that a repeat does
-- nothing. `subject` is a transaction's id, or empty for the lane. The fingerprint refuses another action under the same key.
CREATE TABLE fencepost.order_key (
  subject text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  signer text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  fingerprint bytea NOT NULL,
  carried_out_at timestamptz NOT NULL,
  PRIMARY KEY (subject, key, signer, chain_id),
  CONSTRAINT order_key_key CHECK (length(key) BETWEEN 1 AND 255),
  CONSTRAINT order_key_fingerprint CHECK (length(fingerprint) = 32)
);
CREATE INDEX order_key_carried_out_at ON fencepost.order_key (carried_out_at);

-- Operators' actions on a lane as a whole. Appended in the transaction that carried the action out.
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

-- Kill switch of one signer on all chains, or of everything. Outside the lanes, so that no lane's lock or owner can delay it.
-- A row is never removed; a kill ends by `ended_at` alone.
CREATE TABLE fencepost.kill (
  kill_id uuid PRIMARY KEY,
  signer text COLLATE "C",
  actor text NOT NULL,
  reason text NOT NULL,
  at timestamptz NOT NULL,
  ended_at timestamptz,
  ended_by text,
  ended_why text,
  CONSTRAINT kill_signer CHECK (signer IS NULL OR (octet_length(signer) = 42 AND signer ~ '^0x[0-9a-f]*$')),
  CONSTRAINT kill_end CHECK (num_nonnulls(ended_at, ended_by, ended_why) IN (0, 3))
);

-- API keys that are managed while nodes run. A limit that is null does not apply.
CREATE TABLE fencepost.api_key (
  name text COLLATE "C" PRIMARY KEY,
  scopes text[] NOT NULL,
  signers text[],
  chains bigint[],
  creates_per_second integer,
  queue_share real,
  created_at timestamptz NOT NULL,
  -- Requests per second that make a node ask a chain; null: as the node is configured.
  reads_per_second integer,
  CONSTRAINT api_key_name CHECK (name ~ '^[A-Za-z0-9_.-]{1,64}$'),
  CONSTRAINT api_key_scopes CHECK (
    scopes <@ ARRAY['read', 'submit', 'reserve', 'operate', 'approve', 'sign', 'admin'] AND cardinality(scopes) > 0
  ),
  CONSTRAINT api_key_signers CHECK (cardinality(signers) > 0),
  CONSTRAINT api_key_chains CHECK (cardinality(chains) > 0),
  CONSTRAINT api_key_creates_per_second CHECK (creates_per_second > 0),
  CONSTRAINT api_key_queue_share CHECK (queue_share > 0 AND queue_share <= 1),
  CONSTRAINT api_key_reads_per_second CHECK (reads_per_second > 0)
);

-- SHA-256 of each secret of a key, never the secret.
CREATE TABLE fencepost.api_secret (
  digest bytea PRIMARY KEY,
  name text COLLATE "C" NOT NULL REFERENCES fencepost.api_key ON DELETE CASCADE,
  -- First or second secret: two exist while a key is rotated.
  slot smallint NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT api_secret_digest CHECK (octet_length(digest) = 32),
  CONSTRAINT api_secret_slot CHECK (slot IN (1, 2)),
  CONSTRAINT api_secret_by_name UNIQUE (name, slot)
);

-- Changes of API keys: an audit. Appended in the transaction that made the change, and kept after the key is revoked.
CREATE TABLE fencepost.key_decision (
  decision_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  detail jsonb NOT NULL,
  at timestamptz NOT NULL
);
CREATE INDEX key_decision_by_name ON fencepost.key_decision (name, decision_id);

-- Use of an API key's limits over all its signers on a chain, in wei. No lane's lock covers it: it is changed by addition, and
-- the transaction fails if the sum would exceed the limit.
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

-- Amounts counted against limits, entry by entry and never changed: the worst case, additions by further payloads, and the
-- refund when the outcome is final. Only transactions that a policy limits have rows.
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

-- Policy documents and who applied them: an audit.
CREATE TABLE fencepost.policy_change (
  change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node_id text NOT NULL,
  hash text COLLATE "C",
  document jsonb,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null: noted by a node of a version that worked by its own file.
  version bigint,
  actor text,
  reason text,
  CONSTRAINT policy_change_none CHECK ((hash IS NULL) = (document IS NULL))
);

-- Hash of each chain's first block, as first seen: another hash is another chain with the same id.
CREATE TABLE fencepost.chain (
  chain_id bigint PRIMARY KEY,
  genesis_hash text COLLATE "C" NOT NULL,
  CONSTRAINT chain_genesis_hash CHECK (octet_length(genesis_hash) = 66 AND genesis_hash ~ '^0x[0-9a-f]*$')
);

-- Chains that nodes have served on this database. A node that starts on another chain must name it: otherwise the endpoint
-- alone would choose the chain for which transactions are signed.
CREATE TABLE fencepost.served_chain (
  chain_id bigint PRIMARY KEY,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT served_chain_id CHECK (chain_id > 0)
);

-- Lanes that moved from one node to another, written by the takeover itself. The oldest rows are removed when a node registers.
CREATE TABLE fencepost.takeover (
  takeover_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  from_node text,
  to_node text NOT NULL,
  token bigint NOT NULL,
  why text NOT NULL,
  at timestamptz NOT NULL
);
-- Finds the last owner of a lane that was given back.
CREATE INDEX takeover_by_lane ON fencepost.takeover (signer, chain_id, takeover_id);

-- Findings that only one node can make (its endpoints, its signers), so that every node can show them.
CREATE TABLE fencepost.node_report (
  instance_id uuid PRIMARY KEY,
  findings jsonb NOT NULL,
  at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Events that a person must acknowledge: a use of a key from outside, written by the lane's owner under its fence, and a node
-- that vanished without draining. Repeats before the acknowledgement are counted on the row; a later one is another row.
CREATE TABLE fencepost.notice (
  notice_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  kind text NOT NULL,
  chain_id bigint,
  signer text COLLATE "C",
  node_id text,
  first_seen_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  times bigint NOT NULL,
  evidence jsonb NOT NULL,
  over_at timestamptz,
  acknowledged_at timestamptz,
  acknowledged_by text,
  acknowledged_why text,
  acknowledged_key text,
  acknowledged_words bytea,
  CONSTRAINT notice_kind CHECK (kind IN ('EXTERNAL_KEY_USE', 'NODE_VANISHED')),
  CONSTRAINT notice_subject CHECK (
    CASE kind WHEN 'NODE_VANISHED' THEN node_id IS NOT NULL AND num_nonnulls(chain_id, signer) = 0
      ELSE num_nonnulls(chain_id, signer) = 2 AND node_id IS NULL AND over_at IS NULL END
  ),
  CONSTRAINT notice_signer CHECK (signer IS NULL OR (octet_length(signer) = 42 AND signer ~ '^0x[0-9a-f]*$')),
  CONSTRAINT notice_times CHECK (times > 0),
  CONSTRAINT notice_acknowledged CHECK (num_nonnulls(acknowledged_at, acknowledged_by, acknowledged_why) IN (0, 3)),
  CONSTRAINT notice_order CHECK (num_nonnulls(acknowledged_key, acknowledged_words) IN (0, 2))
);
-- At most one open notice for each lane, and for each node.
CREATE UNIQUE INDEX notice_open_lane ON fencepost.notice (signer, chain_id)
  WHERE kind = 'EXTERNAL_KEY_USE' AND acknowledged_at IS NULL;
CREATE UNIQUE INDEX notice_open_node ON fencepost.notice (node_id)
  WHERE kind = 'NODE_VANISHED' AND acknowledged_at IS NULL AND over_at IS NULL;
CREATE INDEX notice_by_lane ON fencepost.notice (signer, chain_id, last_seen_at);
CREATE INDEX notice_by_time ON fencepost.notice (last_seen_at);

-- The database history that each registration saw. Another system, another timeline or a lower WAL position means that
-- commits may be lost: the feed then begins a new epoch.
CREATE TABLE fencepost.database_history (
  ordinal integer PRIMARY KEY,
  system_identifier text NOT NULL,
  timeline text NOT NULL,
  wal_position numeric NOT NULL,
  epoch integer NOT NULL,
  seen_at timestamptz NOT NULL,
  -- Acknowledged commits may be missing from the history that this epoch began with.
  may_have_lost boolean NOT NULL DEFAULT false,
  -- Database and table in which the lanes were found, as numbered by PostgreSQL. A dump loaded into its own server keeps
  -- system and timeline, but not these numbers.
  place text COLLATE "C"
) WITH (fillfactor = 50);

-- Proof of commit. Every writing transaction puts a fresh marker into a row that no concurrent transaction uses; a node that
-- lost the answer to COMMIT waits for that row and reads it. Not `pg_xact_status`: after a crash a lost transaction's number
-- can be given to another one, which then commits.
CREATE TABLE fencepost.commit_marker (
  store_id uuid NOT NULL,
  slot integer NOT NULL,
  marker uuid NOT NULL,
  written_at timestamptz NOT NULL,
  PRIMARY KEY (store_id, slot)
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Empty. A node of an earlier version that reads no secret here accepts no requests from other nodes.
CREATE TABLE fencepost.cluster (
  only_row boolean PRIMARY KEY DEFAULT true,
  secret text NOT NULL,
  CONSTRAINT cluster_only_row CHECK (only_row),
  CONSTRAINT cluster_secret CHECK (length(secret) >= 64)
);

-- Aborts a transaction whose statement touched another number of rows than planned under the lane's lock. COMMIT is already
-- sent by then, so only the server can still refuse.
CREATE FUNCTION fencepost.require_rows(actual bigint, planned bigint, what text) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  IF actual IS DISTINCT FROM planned THEN
    RAISE EXCEPTION '%: % rows where % were planned', what, actual, planned USING ERRCODE = 'FP001';
  END IF;
  RETURN actual;
END
$$;

-- Aborts a transaction whose decision is outdated. A new decision may succeed, so it is a serialization failure.
CREATE FUNCTION fencepost.require_still(actual bigint, planned bigint, what text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF actual IS DISTINCT FROM planned THEN
    RAISE EXCEPTION '%: % of % are still as they were', what, actual, planned USING ERRCODE = '40001';
  END IF;
  RETURN actual;
END
$$;

-- For transactions sent in one write, BEGIN and COMMIT included. If BEGIN alone fails, the server would run each statement as
-- a transaction of its own: each asks here whether its transaction is open, and aborts if not.
CREATE FUNCTION fencepost.require_open(mark text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF mark IS NOT NULL AND mark IS DISTINCT FROM current_setting('fencepost.transaction', true) THEN
    RAISE EXCEPTION 'the transaction that this belongs to is not open' USING ERRCODE = 'FP002';
  END IF;
  RETURN true;
END
$$;

-- Used before a takeover that row locks starve: shared row locks pass a waiting exclusive one, table locks queue. A function,
-- because only a query can be prepared.
CREATE FUNCTION fencepost.lock_lane_table() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE fencepost.lane IN EXCLUSIVE MODE;
END
$$;
