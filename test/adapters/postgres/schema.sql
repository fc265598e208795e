-- Made from a migrated database. Do not edit: change a migration, then update the snapshot.

CREATE TABLE fencepost.abi_document (
  only_row boolean NOT NULL DEFAULT true,
  items jsonb NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  changed_by text NOT NULL,
  CONSTRAINT abi_document_pkey PRIMARY KEY (only_row),
  CONSTRAINT abi_document_only_row CHECK (only_row)
);

CREATE TABLE fencepost.api_key (
  name text COLLATE "C" NOT NULL,
  scopes text[] NOT NULL,
  signers text[],
  chains bigint[],
  creates_per_second integer,
  queue_share real,
  created_at timestamp with time zone NOT NULL,
  reads_per_second integer,
  CONSTRAINT api_key_pkey PRIMARY KEY (name),
  CONSTRAINT api_key_chains CHECK ((cardinality(chains) > 0)),
  CONSTRAINT api_key_creates_per_second CHECK ((creates_per_second > 0)),
  CONSTRAINT api_key_name CHECK ((name ~ '^[A-Za-z0-9_.-]{1,64}$'::text)),
  CONSTRAINT api_key_queue_share CHECK (((queue_share > (0)::double precision) AND (queue_share <= (1)::double precision))),
  CONSTRAINT api_key_reads_per_second CHECK ((reads_per_second > 0)),
  CONSTRAINT api_key_scopes CHECK (((scopes <@ ARRAY['read'::text, 'submit'::text, 'reserve'::text, 'operate'::text, 'approve'::text, 'sign'::text, 'admin'::text]) AND (cardinality(scopes) > 0))),
  CONSTRAINT api_key_signers CHECK ((cardinality(signers) > 0))
);

CREATE TABLE fencepost.api_secret (
  digest bytea NOT NULL,
  name text COLLATE "C" NOT NULL,
  slot smallint NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT api_secret_by_name UNIQUE (name, slot),
  CONSTRAINT api_secret_pkey PRIMARY KEY (digest),
  CONSTRAINT api_secret_name_fkey FOREIGN KEY (name) REFERENCES fencepost.api_key(name) ON DELETE CASCADE,
  CONSTRAINT api_secret_digest CHECK ((octet_length(digest) = 32)),
  CONSTRAINT api_secret_slot CHECK ((slot = ANY (ARRAY[1, 2])))
);

CREATE UNIQUE INDEX api_secret_by_name ON fencepost.api_secret USING btree (name, slot);

CREATE TABLE fencepost.attempt (
  tx_id uuid NOT NULL,
  ordinal integer NOT NULL,
  chain_id bigint NOT NULL,
  tx_hash text COLLATE "C",
  kind text COLLATE "C" NOT NULL,
  gas bigint NOT NULL,
  fee_type text COLLATE "C" NOT NULL,
  gas_price numeric(78,0),
  max_fee_per_gas numeric(78,0),
  max_priority_fee_per_gas numeric(78,0),
  raw_transaction bytea,
  created_at timestamp with time zone NOT NULL,
  first_sent_at timestamp with time zone,
  is_foreign boolean NOT NULL DEFAULT false,
  node_signed boolean NOT NULL DEFAULT false,
  is_private boolean NOT NULL DEFAULT false,
  CONSTRAINT attempt_pkey PRIMARY KEY (tx_id, ordinal),
  CONSTRAINT attempt_bytes CHECK (((raw_transaction IS NOT NULL) OR (kind = 'external'::text) OR node_signed)),
  CONSTRAINT attempt_fees CHECK (
CASE fee_type
    WHEN 'eip1559'::text THEN ((gas_price IS NULL) AND (max_fee_per_gas >= (0)::numeric) AND (max_priority_fee_per_gas >= (0)::numeric) AND (max_fee_per_gas IS NOT NULL) AND (max_priority_fee_per_gas IS NOT NULL))
    WHEN 'legacy'::text THEN ((gas_price IS NOT NULL) AND (gas_price >= (0)::numeric) AND (max_fee_per_gas IS NULL) AND (max_priority_fee_per_gas IS NULL))
    WHEN 'eip2930'::text THEN ((gas_price IS NOT NULL) AND (gas_price >= (0)::numeric) AND (max_fee_per_gas IS NULL) AND (max_priority_fee_per_gas IS NULL))
    ELSE false
END),
  CONSTRAINT attempt_foreign CHECK (((NOT is_foreign) OR ((kind = 'external'::text) AND (first_sent_at IS NULL)))),
  CONSTRAINT attempt_gas CHECK ((gas >= 0)),
  CONSTRAINT attempt_hash CHECK (((tx_hash IS NOT NULL) OR node_signed)),
  CONSTRAINT attempt_kind CHECK ((kind = ANY (ARRAY['initial'::text, 'reprice'::text, 'cancel'::text, 'replace'::text, 'placeholder'::text, 'external'::text]))),
  CONSTRAINT attempt_ordinal CHECK ((ordinal >= 1)),
  CONSTRAINT attempt_tx_hash CHECK (((octet_length(tx_hash) = 66) AND (tx_hash ~ '^0x[0-9a-f]*$'::text)))
);

CREATE UNIQUE INDEX attempt_tx_hash_once ON fencepost.attempt USING btree (tx_hash, chain_id);

CREATE TABLE fencepost.chain (
  chain_id bigint NOT NULL,
  genesis_hash text COLLATE "C" NOT NULL,
  CONSTRAINT chain_pkey PRIMARY KEY (chain_id),
  CONSTRAINT chain_genesis_hash CHECK (((octet_length(genesis_hash) = 66) AND (genesis_hash ~ '^0x[0-9a-f]*$'::text)))
);

CREATE TABLE fencepost.charge (
  tx_id uuid NOT NULL,
  charge_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  chain_id bigint NOT NULL,
  ordinal integer NOT NULL,
  moves numeric(78,0) NOT NULL,
  counted_in timestamp with time zone NOT NULL,
  value numeric(78,0) NOT NULL,
  cost numeric(78,0) NOT NULL,
  settles boolean NOT NULL,
  CONSTRAINT charge_pkey PRIMARY KEY (tx_id, charge_id),
  CONSTRAINT charge_amounts CHECK ((settles OR ((value >= (0)::numeric) AND (cost >= (0)::numeric)))),
  CONSTRAINT charge_moves CHECK ((moves >= (0)::numeric)),
  CONSTRAINT charge_ordinal CHECK ((ordinal >= 0))
);

CREATE TABLE fencepost.cluster (
  only_row boolean NOT NULL DEFAULT true,
  secret text NOT NULL,
  CONSTRAINT cluster_pkey PRIMARY KEY (only_row),
  CONSTRAINT cluster_only_row CHECK (only_row),
  CONSTRAINT cluster_secret CHECK ((length(secret) >= 64))
);

CREATE TABLE fencepost.commit_marker (
  store_id uuid NOT NULL,
  slot integer NOT NULL,
  marker uuid NOT NULL,
  written_at timestamp with time zone NOT NULL,
  CONSTRAINT commit_marker_pkey PRIMARY KEY (store_id, slot)
) WITH (fillfactor=10, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000);

CREATE TABLE fencepost.completion (
  seq bigint NOT NULL,
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
  at timestamp with time zone NOT NULL,
  CONSTRAINT completion_pkey PRIMARY KEY (seq),
  CONSTRAINT completion_settled CHECK ((settled = (state = ANY (ARRAY['CONFIRMED'::text, 'FAILED_FINAL'::text])))),
  CONSTRAINT completion_state CHECK ((state = ANY (ARRAY['CONFIRMED'::text, 'FAILED_FINAL'::text, 'STUCK'::text, 'REORGED'::text]))),
  CONSTRAINT completion_tx_hash CHECK (((octet_length(tx_hash) = 66) AND (tx_hash ~ '^0x[0-9a-f]*$'::text)))
);

CREATE TABLE fencepost.confirmation (
  chain_id bigint NOT NULL,
  block_number bigint NOT NULL,
  block_hash text COLLATE "C" NOT NULL,
  CONSTRAINT confirmation_pkey PRIMARY KEY (chain_id, block_number),
  CONSTRAINT confirmation_block CHECK (((block_number >= 0) AND (octet_length(block_hash) = 66) AND (block_hash ~ '^0x[0-9a-f]*$'::text)))
) WITH (autovacuum_vacuum_scale_factor=0.05);

CREATE TABLE fencepost.database_history (
  ordinal integer NOT NULL,
  system_identifier text NOT NULL,
  timeline text NOT NULL,
  wal_position numeric NOT NULL,
  epoch integer NOT NULL,
  seen_at timestamp with time zone NOT NULL,
  may_have_lost boolean NOT NULL DEFAULT false,
  place text COLLATE "C",
  CONSTRAINT database_history_pkey PRIMARY KEY (ordinal)
) WITH (fillfactor=50);

CREATE TABLE fencepost.declined (
  tx_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  problem text NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT declined_pkey PRIMARY KEY (tx_id)
);

CREATE INDEX declined_at ON fencepost.declined USING btree (at);

CREATE TABLE fencepost.epoch_floor (
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  next_nonce bigint NOT NULL,
  CONSTRAINT epoch_floor_pkey PRIMARY KEY (signer, chain_id)
);

CREATE TABLE fencepost.feed (
  only_row boolean NOT NULL DEFAULT true,
  epoch integer NOT NULL,
  last_seq bigint NOT NULL,
  truncated_through bigint NOT NULL,
  epoch_starts_after bigint NOT NULL,
  CONSTRAINT feed_pkey PRIMARY KEY (only_row),
  CONSTRAINT feed_only_row CHECK (only_row),
  CONSTRAINT feed_order CHECK (((epoch >= 1) AND (epoch_starts_after >= 0) AND ((truncated_through >= 0) AND (truncated_through <= last_seq)) AND (epoch_starts_after <= last_seq)))
) WITH (fillfactor=10, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000);

CREATE TABLE fencepost.figures (
  signer text COLLATE "C" NOT NULL,
  step_seconds integer NOT NULL,
  at timestamp with time zone NOT NULL,
  chain_id bigint NOT NULL,
  instance_id uuid NOT NULL,
  created integer NOT NULL,
  completed integer NOT NULL,
  failed integer NOT NULL,
  fees numeric NOT NULL,
  detail jsonb NOT NULL,
  CONSTRAINT figures_pkey PRIMARY KEY (signer, step_seconds, at, chain_id, instance_id)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.05);

CREATE INDEX figures_by_time ON fencepost.figures USING btree (step_seconds, at);

CREATE TABLE fencepost.hole (
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  nonce bigint NOT NULL,
  why text COLLATE "C" NOT NULL,
  detail text NOT NULL,
  reservation_id uuid,
  since timestamp with time zone NOT NULL,
  owner text COLLATE "C",
  ttl_ms bigint,
  CONSTRAINT hole_pkey PRIMARY KEY (signer, chain_id, nonce),
  CONSTRAINT hole_nonce CHECK (((nonce >= 0) AND (nonce <= '9007199254740991'::bigint))),
  CONSTRAINT hole_reservation CHECK (((why <> ALL (ARRAY['released'::text, 'expired'::text])) OR (reservation_id IS NOT NULL))),
  CONSTRAINT hole_why CHECK ((why = ANY (ARRAY['released'::text, 'givenUp'::text, 'shiftedDown'::text, 'expired'::text])))
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);

CREATE TABLE fencepost.intake (
  intake_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  tx_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  to_address text COLLATE "C",
  data bytea NOT NULL,
  value numeric(78,0) NOT NULL,
  gas bigint,
  fee_type text COLLATE "C",
  gas_price numeric(78,0),
  max_fee_per_gas numeric(78,0),
  max_priority_fee_per_gas numeric(78,0),
  access_list jsonb,
  metadata jsonb,
  fingerprint bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  alias_of uuid,
  owner text COLLATE "C",
  awaits text COLLATE "C",
  expires_at timestamp with time zone,
  approved_at timestamp with time zone,
  allow_no_code boolean NOT NULL DEFAULT false,
  valid_until timestamp with time zone,
  held_since timestamp with time zone,
  holds integer NOT NULL DEFAULT 0,
  unanswered boolean NOT NULL DEFAULT false,
  CONSTRAINT intake_pkey PRIMARY KEY (intake_id),
  CONSTRAINT intake_awaits CHECK ((((awaits IS NULL) = (expires_at IS NULL)) AND ((approved_at IS NULL) OR (awaits IS NOT NULL)))),
  CONSTRAINT intake_chain_id CHECK ((chain_id > 0)),
  CONSTRAINT intake_data CHECK ((octet_length(data) <= 131072)),
  CONSTRAINT intake_fee_type CHECK ((fee_type = ANY (ARRAY['legacy'::text, 'eip2930'::text, 'eip1559'::text]))),
  CONSTRAINT intake_fees CHECK (((gas_price >= (0)::numeric) AND (max_fee_per_gas >= (0)::numeric) AND (max_priority_fee_per_gas >= (0)::numeric))),
  CONSTRAINT intake_fingerprint CHECK ((octet_length(fingerprint) = 32)),
  CONSTRAINT intake_gas CHECK ((gas >= 0)),
  CONSTRAINT intake_request_id CHECK (((length(request_id) >= 1) AND (length(request_id) <= 255))),
  CONSTRAINT intake_signer CHECK (((octet_length(signer) = 42) AND (signer ~ '^0x[0-9a-f]*$'::text))),
  CONSTRAINT intake_to_address CHECK (((octet_length(to_address) = 42) AND (to_address ~ '^0x[0-9a-f]*$'::text))),
  CONSTRAINT intake_value CHECK ((value >= (0)::numeric))
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);

CREATE UNIQUE INDEX intake_awaited_request ON fencepost.intake USING btree (request_id, signer, chain_id) WHERE ((awaits IS NOT NULL) AND (alias_of IS NULL) AND (request_id IS NOT NULL));

CREATE INDEX intake_awaiting ON fencepost.intake USING btree (intake_id) WHERE ((awaits IS NOT NULL) AND (approved_at IS NULL) AND (alias_of IS NULL));

CREATE INDEX intake_on_chain ON fencepost.intake USING btree ((
CASE
    WHEN (alias_of IS NULL) THEN chain_id
    ELSE NULL::bigint
END), tx_id);

CREATE INDEX intake_on_lane ON fencepost.intake USING btree ((
CASE
    WHEN (alias_of IS NULL) THEN hashtextextended(signer, chain_id)
    ELSE NULL::bigint
END), tx_id);

CREATE INDEX intake_request ON fencepost.intake USING btree (request_id) WHERE (request_id IS NOT NULL);

CREATE UNIQUE INDEX intake_tx_id ON fencepost.intake USING btree (tx_id);

CREATE INDEX intake_waiting ON fencepost.intake USING btree (signer, chain_id, intake_id) WHERE (alias_of IS NULL);

CREATE TABLE fencepost.key_decision (
  decision_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  name text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  detail jsonb NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT key_decision_pkey PRIMARY KEY (decision_id)
);

CREATE INDEX key_decision_by_name ON fencepost.key_decision USING btree (name, decision_id);

CREATE TABLE fencepost.key_use (
  owner text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  use_hour timestamp with time zone NOT NULL,
  hour_value numeric(78,0) NOT NULL,
  hour_cost numeric(78,0) NOT NULL,
  day_value numeric(78,0) NOT NULL,
  day_cost numeric(78,0) NOT NULL,
  CONSTRAINT key_use_pkey PRIMARY KEY (owner, chain_id)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);

CREATE TABLE fencepost.kill (
  kill_id uuid NOT NULL,
  signer text COLLATE "C",
  actor text NOT NULL,
  reason text NOT NULL,
  at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  ended_by text,
  ended_why text,
  CONSTRAINT kill_pkey PRIMARY KEY (kill_id),
  CONSTRAINT kill_end CHECK ((num_nonnulls(ended_at, ended_by, ended_why) = ANY (ARRAY[0, 3]))),
  CONSTRAINT kill_signer CHECK (((signer IS NULL) OR ((octet_length(signer) = 42) AND (signer ~ '^0x[0-9a-f]*$'::text))))
);

CREATE TABLE fencepost.lane (
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  owner_instance uuid,
  token bigint NOT NULL DEFAULT 0,
  acquired_at timestamp with time zone,
  next_nonce bigint,
  suspended boolean NOT NULL DEFAULT false,
  confirmed_total bigint NOT NULL DEFAULT 0,
  failed_total bigint NOT NULL DEFAULT 0,
  reconciled_epoch integer NOT NULL DEFAULT 1,
  suspended_by text COLLATE "C",
  live_allocated bigint NOT NULL DEFAULT 0,
  live_tracking bigint NOT NULL DEFAULT 0,
  live_stuck bigint NOT NULL DEFAULT 0,
  live_confirmed bigint NOT NULL DEFAULT 0,
  live_failed bigint NOT NULL DEFAULT 0,
  use_hour timestamp with time zone,
  hour_value numeric(78,0),
  hour_cost numeric(78,0),
  day_value numeric(78,0),
  day_cost numeric(78,0),
  departed_below bigint,
  policy_stamp uuid NOT NULL DEFAULT policy_stamp(),
  CONSTRAINT lane_pkey PRIMARY KEY (signer, chain_id),
  CONSTRAINT lane_chain_id CHECK ((chain_id > 0)),
  CONSTRAINT lane_departed_below CHECK ((departed_below >= 0)),
  CONSTRAINT lane_next_nonce CHECK ((next_nonce >= 0)),
  CONSTRAINT lane_signer CHECK (((octet_length(signer) = 42) AND (signer ~ '^0x[0-9a-f]*$'::text))),
  CONSTRAINT lane_suspended_by CHECK ((((suspended_by = ANY (ARRAY['OPERATOR'::text, 'HISTORY'::text])) AND suspended) OR (suspended_by IS NULL))),
  CONSTRAINT lane_token CHECK (((token >= 0) AND ((owner_instance IS NULL) OR (token > 0)))),
  CONSTRAINT lane_use CHECK ((num_nulls(use_hour, hour_value, hour_cost, day_value, day_cost) = ANY (ARRAY[0, 5])))
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);

CREATE INDEX lane_troubled ON fencepost.lane USING btree (signer, chain_id) WHERE (suspended OR (live_stuck > 0));

CREATE TABLE fencepost.lane_decision (
  decision_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL,
  node_id text,
  token bigint NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT lane_decision_pkey PRIMARY KEY (decision_id)
);

CREATE INDEX lane_decision_by_lane ON fencepost.lane_decision USING btree (signer, chain_id, decision_id);

CREATE TABLE fencepost.left_request (
  left_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  action text NOT NULL,
  body text NOT NULL,
  owner text COLLATE "C",
  repeatable boolean NOT NULL,
  until timestamp with time zone NOT NULL,
  begun_by uuid,
  answer text,
  CONSTRAINT left_request_pkey PRIMARY KEY (left_id)
);

CREATE INDEX left_request_until ON fencepost.left_request USING btree (until);

CREATE TABLE fencepost.message_use (
  signer text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  rule text COLLATE "C" NOT NULL,
  use_hour timestamp with time zone NOT NULL,
  hour_amount numeric NOT NULL,
  hour_signatures bigint NOT NULL,
  day_amount numeric NOT NULL,
  day_signatures bigint NOT NULL,
  CONSTRAINT message_use_pkey PRIMARY KEY (signer, chain_id, rule)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.05);

CREATE TABLE fencepost.migration (
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  works_with text,
  CONSTRAINT migration_pkey PRIMARY KEY (name)
);

CREATE TABLE fencepost.node_instance (
  instance_id uuid NOT NULL,
  node_id text NOT NULL,
  url text NOT NULL,
  version text NOT NULL,
  mode text NOT NULL,
  started_at timestamp with time zone NOT NULL,
  heartbeat_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  counter bigint NOT NULL DEFAULT 1,
  dead boolean NOT NULL DEFAULT false,
  chains bigint[] NOT NULL DEFAULT '{}'::bigint[],
  signers text[] COLLATE "C" NOT NULL DEFAULT '{}'::text[],
  draining boolean NOT NULL DEFAULT false,
  knows_migration text COLLATE "C",
  session_lock integer,
  stands_back boolean NOT NULL DEFAULT false,
  public_key text,
  key_proof text,
  keys_away text[] COLLATE "C",
  CONSTRAINT node_instance_pkey PRIMARY KEY (instance_id),
  CONSTRAINT node_instance_mode CHECK ((mode = ANY (ARRAY['basic'::text, 'worker-queue'::text])))
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=100);

CREATE TABLE fencepost.node_report (
  instance_id uuid NOT NULL,
  findings jsonb NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT node_report_pkey PRIMARY KEY (instance_id)
) WITH (fillfactor=50);

CREATE TABLE fencepost.notice (
  notice_id uuid NOT NULL DEFAULT gen_random_uuid(),
  kind text NOT NULL,
  chain_id bigint,
  signer text COLLATE "C",
  node_id text,
  first_seen_at timestamp with time zone NOT NULL,
  last_seen_at timestamp with time zone NOT NULL,
  times bigint NOT NULL,
  evidence jsonb NOT NULL,
  over_at timestamp with time zone,
  acknowledged_at timestamp with time zone,
  acknowledged_by text,
  acknowledged_why text,
  acknowledged_key text,
  acknowledged_words bytea,
  CONSTRAINT notice_pkey PRIMARY KEY (notice_id),
  CONSTRAINT notice_acknowledged CHECK ((num_nonnulls(acknowledged_at, acknowledged_by, acknowledged_why) = ANY (ARRAY[0, 3]))),
  CONSTRAINT notice_kind CHECK ((kind = ANY (ARRAY['EXTERNAL_KEY_USE'::text, 'NODE_VANISHED'::text]))),
  CONSTRAINT notice_order CHECK ((num_nonnulls(acknowledged_key, acknowledged_words) = ANY (ARRAY[0, 2]))),
  CONSTRAINT notice_signer CHECK (((signer IS NULL) OR ((octet_length(signer) = 42) AND (signer ~ '^0x[0-9a-f]*$'::text)))),
  CONSTRAINT notice_subject CHECK (
CASE kind
    WHEN 'NODE_VANISHED'::text THEN ((node_id IS NOT NULL) AND (num_nonnulls(chain_id, signer) = 0))
    ELSE ((num_nonnulls(chain_id, signer) = 2) AND (node_id IS NULL) AND (over_at IS NULL))
END),
  CONSTRAINT notice_times CHECK ((times > 0))
);

CREATE INDEX notice_by_lane ON fencepost.notice USING btree (signer, chain_id, last_seen_at);

CREATE INDEX notice_by_time ON fencepost.notice USING btree (last_seen_at);

CREATE UNIQUE INDEX notice_open_lane ON fencepost.notice USING btree (signer, chain_id) WHERE ((kind = 'EXTERNAL_KEY_USE'::text) AND (acknowledged_at IS NULL));

CREATE UNIQUE INDEX notice_open_node ON fencepost.notice USING btree (node_id) WHERE ((kind = 'NODE_VANISHED'::text) AND (acknowledged_at IS NULL) AND (over_at IS NULL));

CREATE TABLE fencepost.order_key (
  subject text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  signer text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  fingerprint bytea NOT NULL,
  carried_out_at timestamp with time zone NOT NULL,
  CONSTRAINT order_key_pkey PRIMARY KEY (subject, key, signer, chain_id),
  CONSTRAINT order_key_fingerprint CHECK ((length(fingerprint) = 32)),
  CONSTRAINT order_key_key CHECK (((length(key) >= 1) AND (length(key) <= 255)))
);

CREATE INDEX order_key_carried_out_at ON fencepost.order_key USING btree (carried_out_at);

CREATE TABLE fencepost.payload (
  tx_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  to_address text COLLATE "C",
  data bytea NOT NULL,
  value numeric(78,0) NOT NULL,
  gas bigint,
  gas_limit bigint,
  fee_type text COLLATE "C",
  gas_price numeric(78,0),
  max_fee_per_gas numeric(78,0),
  max_priority_fee_per_gas numeric(78,0),
  access_list jsonb,
  metadata jsonb,
  fingerprint bytea NOT NULL,
  allocated_by text,
  allocated_under bigint,
  allocated_at timestamp with time zone,
  CONSTRAINT payload_pkey PRIMARY KEY (tx_id),
  CONSTRAINT payload_allocated CHECK ((num_nulls(allocated_by, allocated_under, allocated_at) = ANY (ARRAY[0, 3]))),
  CONSTRAINT payload_data CHECK ((octet_length(data) <= 131072)),
  CONSTRAINT payload_fee_type CHECK ((fee_type = ANY (ARRAY['legacy'::text, 'eip2930'::text, 'eip1559'::text]))),
  CONSTRAINT payload_fees CHECK (((gas_price >= (0)::numeric) AND (max_fee_per_gas >= (0)::numeric) AND (max_priority_fee_per_gas >= (0)::numeric))),
  CONSTRAINT payload_fingerprint CHECK ((octet_length(fingerprint) = 32)),
  CONSTRAINT payload_gas CHECK (((gas >= 0) AND (gas_limit >= 0))),
  CONSTRAINT payload_to_address CHECK (((octet_length(to_address) = 42) AND (to_address ~ '^0x[0-9a-f]*$'::text))),
  CONSTRAINT payload_value CHECK ((value >= (0)::numeric))
);

CREATE TABLE fencepost.policy (
  only_row boolean NOT NULL DEFAULT true,
  version bigint NOT NULL,
  stamp uuid NOT NULL,
  change_id bigint,
  CONSTRAINT policy_pkey PRIMARY KEY (only_row),
  CONSTRAINT policy_none CHECK (((version = 0) = (change_id IS NULL))),
  CONSTRAINT policy_only_row CHECK (only_row)
);

CREATE TABLE fencepost.policy_change (
  change_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  node_id text NOT NULL,
  hash text COLLATE "C",
  document jsonb,
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  version bigint,
  actor text,
  reason text,
  CONSTRAINT policy_change_pkey PRIMARY KEY (change_id),
  CONSTRAINT policy_change_none CHECK (((hash IS NULL) = (document IS NULL)))
);

CREATE TABLE fencepost.pool_choice (
  tx_id uuid NOT NULL,
  request_id text COLLATE "C",
  pool text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  CONSTRAINT pool_choice_request UNIQUE (request_id, pool, chain_id),
  CONSTRAINT pool_choice_pkey PRIMARY KEY (tx_id)
) WITH (autovacuum_vacuum_insert_scale_factor=0.05);

CREATE UNIQUE INDEX pool_choice_request ON fencepost.pool_choice USING btree (request_id, pool, chain_id);

CREATE TABLE fencepost.queued_change (
  tx_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  to_address text COLLATE "C",
  data bytea NOT NULL,
  value numeric(78,0) NOT NULL,
  gas bigint,
  gas_limit bigint NOT NULL,
  fee_type text COLLATE "C",
  gas_price numeric(78,0),
  max_fee_per_gas numeric(78,0),
  max_priority_fee_per_gas numeric(78,0),
  access_list jsonb,
  CONSTRAINT queued_change_pkey PRIMARY KEY (tx_id),
  CONSTRAINT queued_change_data CHECK ((octet_length(data) <= 131072)),
  CONSTRAINT queued_change_fee_type CHECK ((fee_type = ANY (ARRAY['legacy'::text, 'eip2930'::text, 'eip1559'::text]))),
  CONSTRAINT queued_change_fees CHECK (((gas_price >= (0)::numeric) AND (max_fee_per_gas >= (0)::numeric) AND (max_priority_fee_per_gas >= (0)::numeric))),
  CONSTRAINT queued_change_gas CHECK (((gas >= 0) AND (gas_limit >= 0))),
  CONSTRAINT queued_change_kind CHECK ((kind = ANY (ARRAY['cancel'::text, 'replace'::text, 'placeholder'::text]))),
  CONSTRAINT queued_change_to_address CHECK (((octet_length(to_address) = 42) AND (to_address ~ '^0x[0-9a-f]*$'::text))),
  CONSTRAINT queued_change_value CHECK ((value >= (0)::numeric))
);

CREATE TABLE fencepost.receipt (
  tx_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  tx_hash text COLLATE "C" NOT NULL,
  block_number bigint NOT NULL,
  block_hash text COLLATE "C" NOT NULL,
  transaction_index integer NOT NULL,
  status text COLLATE "C" NOT NULL,
  gas_used bigint NOT NULL,
  effective_gas_price numeric(78,0),
  contract_address text COLLATE "C",
  beside_gas numeric(78,0),
  beside_gas_unsure boolean,
  CONSTRAINT receipt_pkey PRIMARY KEY (tx_id),
  CONSTRAINT receipt_block CHECK (((block_number >= 0) AND (octet_length(block_hash) = 66) AND (block_hash ~ '^0x[0-9a-f]*$'::text))),
  CONSTRAINT receipt_contract_address CHECK (((octet_length(contract_address) = 42) AND (contract_address ~ '^0x[0-9a-f]*$'::text))),
  CONSTRAINT receipt_status CHECK ((status = ANY (ARRAY['success'::text, 'reverted'::text]))),
  CONSTRAINT receipt_tx_hash CHECK (((octet_length(tx_hash) = 66) AND (tx_hash ~ '^0x[0-9a-f]*$'::text)))
);

CREATE TABLE fencepost.reservation (
  reservation_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  nonce bigint NOT NULL,
  request_id text COLLATE "C",
  state text COLLATE "C" NOT NULL DEFAULT 'RESERVED'::text,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  tx_id uuid,
  owner text COLLATE "C",
  CONSTRAINT reservation_pkey PRIMARY KEY (reservation_id),
  CONSTRAINT reservation_nonce CHECK (((nonce >= 0) AND (nonce <= '9007199254740991'::bigint))),
  CONSTRAINT reservation_request_id CHECK (((length(request_id) >= 1) AND (length(request_id) <= 255))),
  CONSTRAINT reservation_state CHECK (
CASE state
    WHEN 'RESERVED'::text THEN (tx_id IS NULL)
    WHEN 'RELEASED'::text THEN (tx_id IS NULL)
    WHEN 'SUBMITTED'::text THEN (tx_id IS NOT NULL)
    WHEN 'USED'::text THEN (tx_id IS NOT NULL)
    ELSE (state = 'EXPIRED'::text)
END)
) WITH (fillfactor=70);

CREATE UNIQUE INDEX reservation_nonce_once ON fencepost.reservation USING btree (chain_id, signer, nonce) WHERE (state <> 'RELEASED'::text);

CREATE INDEX reservation_open ON fencepost.reservation USING btree (signer, chain_id) WHERE (state = 'RESERVED'::text);

CREATE UNIQUE INDEX reservation_request_once ON fencepost.reservation USING btree (request_id, signer, chain_id) WHERE (request_id IS NOT NULL);

CREATE TABLE fencepost.reservation_repair (
  signer text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  tx_id uuid NOT NULL,
  repaired_at timestamp with time zone NOT NULL,
  CONSTRAINT reservation_repair_pkey PRIMARY KEY (signer, chain_id, tx_id)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);

CREATE TABLE fencepost.served_chain (
  chain_id bigint NOT NULL,
  since timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT served_chain_pkey PRIMARY KEY (chain_id),
  CONSTRAINT served_chain_id CHECK ((chain_id > 0))
);

CREATE TABLE fencepost.signature (
  signature_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  request_id text NOT NULL,
  owner text,
  kind text NOT NULL,
  digest bytea NOT NULL,
  message jsonb NOT NULL,
  state text NOT NULL,
  rule text NOT NULL,
  amount numeric NOT NULL,
  signature bytea,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  signed_at timestamp with time zone,
  decided_at timestamp with time zone,
  decided_by text,
  decided_why text,
  node_id text,
  token bigint,
  domain text,
  CONSTRAINT signature_request UNIQUE (signer, chain_id, request_id),
  CONSTRAINT signature_pkey PRIMARY KEY (signature_id),
  CONSTRAINT signature_awaits CHECK (((state <> ALL (ARRAY['AWAITING_APPROVAL'::text, 'REJECTED'::text, 'EXPIRED'::text])) OR (expires_at IS NOT NULL))),
  CONSTRAINT signature_digest CHECK ((length(digest) = 32)),
  CONSTRAINT signature_kind CHECK ((kind = ANY (ARRAY['personal'::text, 'typedData'::text]))),
  CONSTRAINT signature_signed CHECK ((((state = 'SIGNED'::text) = (signature IS NOT NULL)) AND ((signature IS NULL) = (signed_at IS NULL)))),
  CONSTRAINT signature_state CHECK ((state = ANY (ARRAY['AWAITING_APPROVAL'::text, 'ALLOWED'::text, 'SIGNED'::text, 'REJECTED'::text, 'EXPIRED'::text])))
) WITH (autovacuum_vacuum_scale_factor=0.05);

CREATE INDEX signature_by_domain ON fencepost.signature USING btree (domain, signature_id);

CREATE INDEX signature_by_owner ON fencepost.signature USING btree (owner, signature_id);

CREATE INDEX signature_by_signer ON fencepost.signature USING btree (signer, signature_id);

CREATE INDEX signature_by_state ON fencepost.signature USING btree (state, signature_id);

CREATE UNIQUE INDEX signature_request ON fencepost.signature USING btree (signer, chain_id, request_id);

CREATE TABLE fencepost.spend (
  signer text COLLATE "C" NOT NULL,
  at timestamp with time zone NOT NULL,
  chain_id bigint NOT NULL,
  instance_id uuid NOT NULL,
  ranks double precision[] NOT NULL,
  CONSTRAINT spend_pkey PRIMARY KEY (signer, at, chain_id, instance_id)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.05);

CREATE INDEX spend_by_day ON fencepost.spend USING btree (at);

CREATE TABLE fencepost.spent_request (
  digest bytea NOT NULL,
  chain_id bigint NOT NULL,
  left_at timestamp with time zone NOT NULL,
  CONSTRAINT spent_request_pkey PRIMARY KEY (digest),
  CONSTRAINT spent_request_digest CHECK ((octet_length(digest) = 32))
);

CREATE INDEX spent_request_left_at ON fencepost.spent_request USING btree (left_at);

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
  first_at timestamp with time zone NOT NULL,
  last_at timestamp with time zone NOT NULL,
  actor text,
  audit jsonb,
  CONSTRAINT history_pkey PRIMARY KEY (tx_id, ordinal),
  CONSTRAINT history_ordinal CHECK (((ordinal >= 1) AND (count >= 1))),
  CONSTRAINT history_transition CHECK ((((((((event || ' '::text) || COALESCE(from_state, '-'::text)) || ' '::text) || state) || '/'::text) || COALESCE(sub_state, '-'::text)) = ANY (ARRAY['accept - CREATED/-'::text, 'allocate - ALLOCATED/-'::text, 'allocate CREATED ALLOCATED/-'::text, 'refuse - FAILED_FINAL/REJECTED'::text, 'refuse CREATED FAILED_FINAL/REJECTED'::text, 'refuseReusedRequestId - FAILED_FINAL/REQUEST_ID_REUSED'::text, 'refuseReusedRequestId CREATED FAILED_FINAL/REQUEST_ID_REUSED'::text, 'await CREATED CREATED/AWAITING_APPROVAL'::text, 'approve CREATED CREATED/-'::text, 'reject CREATED FAILED_FINAL/REJECTED'::text, 'expire CREATED FAILED_FINAL/EXPIRED'::text, 'expire ALLOCATED FAILED_FINAL/EXPIRED'::text, 'callOff CREATED FAILED_FINAL/CANCELLED'::text, 'sign ALLOCATED TRACKING/PENDING'::text, 'broadcast TRACKING TRACKING/BROADCAST'::text, 'resubmit TRACKING TRACKING/PENDING'::text, 'resubmit TRACKING TRACKING/BROADCAST'::text, 'resubmit TRACKING TRACKING/STALE'::text, 'resubmit TRACKING TRACKING/MINED'::text, 'resubmit TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'resubmit STUCK STUCK/-'::text, 'submitFailed TRACKING TRACKING/PENDING'::text, 'submitFailed TRACKING TRACKING/BROADCAST'::text, 'submitFailed TRACKING TRACKING/STALE'::text, 'submitFailed TRACKING TRACKING/MINED'::text, 'submitFailed TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'submitFailed STUCK STUCK/-'::text, 'stale TRACKING TRACKING/STALE'::text, 'reprice TRACKING TRACKING/PENDING'::text, 'reprice STUCK TRACKING/PENDING'::text, 'cancel TRACKING TRACKING/PENDING'::text, 'cancel STUCK TRACKING/PENDING'::text, 'replace TRACKING TRACKING/PENDING'::text, 'replace STUCK TRACKING/PENDING'::text, 'placeholder TRACKING TRACKING/PENDING'::text, 'placeholder STUCK TRACKING/PENDING'::text, 'amend ALLOCATED ALLOCATED/-'::text, 'decide ALLOCATED ALLOCATED/-'::text, 'decide TRACKING TRACKING/PENDING'::text, 'decide TRACKING TRACKING/BROADCAST'::text, 'decide TRACKING TRACKING/STALE'::text, 'decide TRACKING TRACKING/MINED'::text, 'decide TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'decide STUCK STUCK/-'::text, 'hold CREATED CREATED/-'::text, 'hold CREATED CREATED/AWAITING_APPROVAL'::text, 'hold ALLOCATED ALLOCATED/-'::text, 'hold TRACKING TRACKING/PENDING'::text, 'hold TRACKING TRACKING/BROADCAST'::text, 'hold TRACKING TRACKING/STALE'::text, 'hold TRACKING TRACKING/MINED'::text, 'hold TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'hold STUCK STUCK/-'::text, 'unhold CREATED CREATED/-'::text, 'unhold CREATED CREATED/AWAITING_APPROVAL'::text, 'unhold ALLOCATED ALLOCATED/-'::text, 'unhold TRACKING TRACKING/PENDING'::text, 'unhold TRACKING TRACKING/BROADCAST'::text, 'unhold TRACKING TRACKING/STALE'::text, 'unhold TRACKING TRACKING/MINED'::text, 'unhold TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'unhold STUCK STUCK/-'::text, 'stick TRACKING STUCK/-'::text, 'unstick STUCK TRACKING/PENDING'::text, 'shiftDown ALLOCATED ALLOCATED/-'::text, 'giveUp ALLOCATED FAILED_FINAL/REJECTED'::text, 'loseSight TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'adopt TRACKING TRACKING/BROADCAST'::text, 'sendAnew TRACKING TRACKING/PENDING'::text, 'mine TRACKING TRACKING/MINED'::text, 'mine STUCK TRACKING/MINED'::text, 'withdraw TRACKING TRACKING/PENDING'::text, 'confirm TRACKING CONFIRMED/-'::text, 'revert TRACKING FAILED_FINAL/REVERTED'::text, 'confirmReplacement TRACKING CONFIRMED/REPLACED'::text, 'confirmCancel TRACKING FAILED_FINAL/CANCELLED'::text, 'confirmExpiry TRACKING FAILED_FINAL/EXPIRED'::text, 'loseNonce TRACKING FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY'::text, 'requeue TRACKING ALLOCATED/-'::text, 'reorg CONFIRMED TRACKING/PENDING'::text, 'reorg FAILED_FINAL TRACKING/PENDING'::text])))
) WITH (fillfactor=90);

CREATE TABLE fencepost.subscriber (
  subscriber_id uuid NOT NULL,
  name text COLLATE "C" NOT NULL,
  url text NOT NULL,
  signers text[],
  chains bigint[],
  keys text[],
  states text[],
  generation integer NOT NULL DEFAULT 1,
  rotated_until timestamp with time zone,
  secret_id text NOT NULL,
  give_up_after_ms bigint NOT NULL,
  paused_by text,
  paused_why text,
  paused_at timestamp with time zone,
  epoch integer NOT NULL,
  position bigint NOT NULL,
  done bigint[] NOT NULL DEFAULT '{}'::bigint[],
  failing_since timestamp with time zone,
  last_status integer,
  last_reason text,
  last_at timestamp with time zone,
  next_try_at timestamp with time zone,
  delivered_at timestamp with time zone,
  owner_instance uuid,
  token bigint NOT NULL DEFAULT 0,
  created_by text,
  created_at timestamp with time zone NOT NULL,
  changed_by text NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  CONSTRAINT subscriber_name UNIQUE (name),
  CONSTRAINT subscriber_pkey PRIMARY KEY (subscriber_id),
  CONSTRAINT subscriber_paused CHECK ((((paused_by IS NULL) = (paused_why IS NULL)) AND ((paused_by IS NULL) = (paused_at IS NULL)))),
  CONSTRAINT subscriber_paused_by CHECK ((paused_by = ANY (ARRAY['OPERATOR'::text, 'GONE'::text, 'GAVE_UP'::text]))),
  CONSTRAINT subscriber_paused_is_free CHECK (((paused_by IS NULL) OR (owner_instance IS NULL))),
  CONSTRAINT subscriber_position CHECK ((("position" >= 0) AND (generation >= 1)))
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.05);

CREATE UNIQUE INDEX subscriber_name ON fencepost.subscriber USING btree (name);

CREATE TABLE fencepost.subscriber_decision (
  subscriber_id uuid NOT NULL,
  name text NOT NULL,
  action text NOT NULL,
  actor text NOT NULL,
  detail jsonb,
  at timestamp with time zone NOT NULL
);

CREATE INDEX subscriber_decision_by_time ON fencepost.subscriber_decision USING btree (at);

CREATE TABLE fencepost.takeover (
  takeover_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  from_node text,
  to_node text NOT NULL,
  token bigint NOT NULL,
  why text NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT takeover_pkey PRIMARY KEY (takeover_id)
);

CREATE INDEX takeover_by_lane ON fencepost.takeover USING btree (signer, chain_id, takeover_id);

CREATE TABLE fencepost.transaction (
  tx_id uuid NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  owns_request boolean NOT NULL DEFAULT true,
  nonce bigint,
  state text COLLATE "C" NOT NULL,
  sub_state text COLLATE "C",
  live boolean NOT NULL DEFAULT true,
  outcome text COLLATE "C",
  history_count integer NOT NULL,
  last_event text COLLATE "C" NOT NULL,
  attempt_count integer NOT NULL DEFAULT 0,
  claim_token bigint,
  claim_ordinal integer,
  accepted_ordinal integer,
  submit_attempts integer NOT NULL DEFAULT 0,
  last_submitted_at timestamp with time zone,
  last_error text,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  confirmed_at timestamp with time zone,
  allocated_by text,
  allocated_under bigint,
  signed_at timestamp with time zone,
  broadcast_at timestamp with time zone,
  mined_at timestamp with time zone,
  settled_at timestamp with time zone,
  owner text COLLATE "C",
  valid_until timestamp with time zone,
  expired_at timestamp with time zone,
  held_since timestamp with time zone,
  pinned boolean NOT NULL DEFAULT false,
  CONSTRAINT transaction_pkey PRIMARY KEY (tx_id),
  CONSTRAINT transaction_accepted CHECK (((accepted_ordinal >= 1) AND (accepted_ordinal <= attempt_count))),
  CONSTRAINT transaction_claim CHECK ((((claim_ordinal IS NULL) = (claim_token IS NULL)) AND ((claim_ordinal >= 1) AND (claim_ordinal <= attempt_count)))),
  CONSTRAINT transaction_expired CHECK (((expired_at IS NULL) OR (expired_at >= valid_until))),
  CONSTRAINT transaction_nonce_bound CHECK (((COALESCE(sub_state, '-'::text) = ANY (ARRAY['CANCELLED'::text, 'EXPIRED'::text])) OR ((nonce IS NULL) = ((state = 'CREATED'::text) OR (COALESCE(sub_state, '-'::text) = ANY (ARRAY['REJECTED'::text, 'REQUEST_ID_REUSED'::text])))))),
  CONSTRAINT transaction_nonce_range CHECK (((nonce >= 0) AND (nonce <= '9007199254740991'::bigint))),
  CONSTRAINT transaction_outcome CHECK (((live = (outcome IS NULL)) AND ((outcome IS NULL) OR ((outcome = state) AND (state = ANY (ARRAY['CONFIRMED'::text, 'FAILED_FINAL'::text])))))),
  CONSTRAINT transaction_request_id CHECK (((length(request_id) >= 1) AND (length(request_id) <= 255))),
  CONSTRAINT transaction_signed CHECK (((state <> 'TRACKING'::text) OR (attempt_count > 0))),
  CONSTRAINT transaction_status CHECK ((((state || '/'::text) || COALESCE(sub_state, '-'::text)) = ANY (ARRAY['CREATED/-'::text, 'CREATED/AWAITING_APPROVAL'::text, 'ALLOCATED/-'::text, 'TRACKING/PENDING'::text, 'TRACKING/BROADCAST'::text, 'TRACKING/STALE'::text, 'TRACKING/MINED'::text, 'TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'CONFIRMED/-'::text, 'CONFIRMED/REPLACED'::text, 'FAILED_FINAL/REVERTED'::text, 'FAILED_FINAL/CANCELLED'::text, 'FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY'::text, 'FAILED_FINAL/REJECTED'::text, 'FAILED_FINAL/REQUEST_ID_REUSED'::text, 'FAILED_FINAL/EXPIRED'::text, 'STUCK/-'::text]))),
  CONSTRAINT transaction_steps CHECK (((num_nulls(allocated_by, allocated_under) = 0) OR (num_nonnulls(allocated_by, allocated_under, signed_at, broadcast_at, mined_at, settled_at) = 0)))
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.02);

CREATE INDEX transaction_expiring ON fencepost.transaction USING btree (chain_id, signer, valid_until) WHERE (live AND (valid_until IS NOT NULL));

CREATE INDEX transaction_held ON fencepost.transaction USING btree (chain_id, signer, nonce) WHERE (live AND (held_since IS NOT NULL));

CREATE INDEX transaction_live ON fencepost.transaction USING btree (chain_id, signer, nonce) WHERE live;

CREATE INDEX transaction_live_of_chain ON fencepost.transaction USING btree (chain_id, tx_id) WHERE live;

CREATE INDEX transaction_live_on_lane ON fencepost.transaction USING btree (hashtextextended(signer, chain_id), tx_id) WHERE live;

CREATE UNIQUE INDEX transaction_nonce_once ON fencepost.transaction USING btree (chain_id, signer, nonce);

CREATE INDEX transaction_over_on_chain ON fencepost.transaction USING btree (hashtextextended(outcome, chain_id), tx_id) WHERE (outcome IS NOT NULL);

CREATE INDEX transaction_over_on_lane ON fencepost.transaction USING btree (hashtextextended((outcome || signer), chain_id), tx_id) WHERE (outcome IS NOT NULL);

CREATE UNIQUE INDEX transaction_request_once ON fencepost.transaction USING btree (request_id, signer, chain_id) WHERE (owns_request AND (request_id IS NOT NULL));

CREATE INDEX transaction_request_refused ON fencepost.transaction USING btree (request_id) WHERE ((NOT owns_request) AND (request_id IS NOT NULL));

CREATE TRIGGER keep_live_counts_of_deletes AFTER DELETE ON fencepost.transaction REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT WHEN ((current_setting('fencepost.counts'::text, true) IS DISTINCT FROM 'kept'::text)) EXECUTE FUNCTION fencepost.keep_live_counts();

CREATE TRIGGER keep_live_counts_of_inserts AFTER INSERT ON fencepost.transaction REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT WHEN ((current_setting('fencepost.counts'::text, true) IS DISTINCT FROM 'kept'::text)) EXECUTE FUNCTION fencepost.keep_live_counts();

CREATE TRIGGER keep_live_counts_of_updates AFTER UPDATE ON fencepost.transaction REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows FOR EACH STATEMENT WHEN ((current_setting('fencepost.counts'::text, true) IS DISTINCT FROM 'kept'::text)) EXECUTE FUNCTION fencepost.keep_live_counts();

-- view fencepost.every_step
--  tx_id uuid,
--  ordinal integer,
--  chain_id bigint,
--  event text COLLATE "C",
--  from_state text COLLATE "C",
--  state text COLLATE "C",
--  sub_state text COLLATE "C",
--  node_id text,
--  token bigint,
--  reason text,
--  actor text,
--  audit jsonb,
--  count integer,
--  first_at timestamp with time zone,
--  last_at timestamp with time zone

-- view fencepost.history
--  tx_id uuid,
--  ordinal integer,
--  chain_id bigint,
--  event text COLLATE "C",
--  from_state text COLLATE "C",
--  state text COLLATE "C",
--  sub_state text COLLATE "C",
--  node_id text,
--  token bigint,
--  reason text,
--  actor text,
--  audit jsonb,
--  count integer,
--  first_at timestamp with time zone,
--  last_at timestamp with time zone

-- view fencepost.live_count
--  state text COLLATE "C",
--  chain_id bigint,
--  signer text COLLATE "C",
--  count bigint

CREATE OR REPLACE FUNCTION fencepost.keep_live_counts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION fencepost.lock_lane_table()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  LOCK TABLE fencepost.lane IN EXCLUSIVE MODE;
END
$function$;

CREATE OR REPLACE FUNCTION fencepost.policy_stamp()
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
BEGIN
  RETURN (SELECT p.stamp FROM fencepost.policy AS p WHERE p.only_row);
END
$function$;

CREATE OR REPLACE FUNCTION fencepost.request_digest(chain_id bigint, scope text, request_id text)
 RETURNS bytea
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT sha256(convert_to(chain_id::text || ' ' || octet_length(scope)::text || ' ' || scope || ' ' || request_id, 'UTF8'))
$function$;

CREATE OR REPLACE FUNCTION fencepost.require_open(mark text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF mark IS NOT NULL AND mark IS DISTINCT FROM current_setting('fencepost.transaction', true) THEN
    RAISE EXCEPTION 'the transaction that this belongs to is not open' USING ERRCODE = 'FP002';
  END IF;
  RETURN true;
END
$function$;

CREATE OR REPLACE FUNCTION fencepost.require_rows(actual bigint, planned bigint, what text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF actual IS DISTINCT FROM planned THEN
    RAISE EXCEPTION '%: % rows where % were planned', what, actual, planned USING ERRCODE = 'FP001';
  END IF;
  RETURN actual;
END
$function$;

CREATE OR REPLACE FUNCTION fencepost.require_still(actual bigint, planned bigint, what text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF actual IS DISTINCT FROM planned THEN
    RAISE EXCEPTION '%: % of % are still as they were', what, actual, planned USING ERRCODE = '40001';
  END IF;
  RETURN actual;
END
$function$;

CREATE OR REPLACE FUNCTION fencepost.write_step()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
$function$;
