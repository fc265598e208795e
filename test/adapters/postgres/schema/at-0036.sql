-- A database at migration 0036, the last one before release 0.1.0, by pg_dump 15: its tables, its ledger of migrations, and a
-- transaction whose first step is kept with its payload, as versions before 0014 did.
CREATE SCHEMA fencepost;
CREATE FUNCTION fencepost.keep_live_counts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION fencepost.lock_lane_table() RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  LOCK TABLE fencepost.lane IN EXCLUSIVE MODE;
END
$$;
CREATE FUNCTION fencepost.policy_stamp() RETURNS uuid
    LANGUAGE plpgsql
    AS $$
BEGIN
  RETURN (SELECT p.stamp FROM fencepost.policy AS p WHERE p.only_row);
END
$$;
CREATE FUNCTION fencepost.request_digest(chain_id bigint, scope text, request_id text) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT sha256(convert_to(chain_id::text || ' ' || octet_length(scope)::text || ' ' || scope || ' ' || request_id, 'UTF8'))
$$;
CREATE FUNCTION fencepost.require_open(mark text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF mark IS NOT NULL AND mark IS DISTINCT FROM current_setting('fencepost.transaction', true) THEN
    RAISE EXCEPTION 'the transaction that this belongs to is not open' USING ERRCODE = 'FP002';
  END IF;
  RETURN true;
END
$$;
CREATE FUNCTION fencepost.require_rows(actual bigint, planned bigint, what text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF actual IS DISTINCT FROM planned THEN
    RAISE EXCEPTION '%: % rows where % were planned', what, actual, planned USING ERRCODE = 'FP001';
  END IF;
  RETURN actual;
END
$$;
CREATE FUNCTION fencepost.require_still(actual bigint, planned bigint, what text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF actual IS DISTINCT FROM planned THEN
    RAISE EXCEPTION '%: % of % are still as they were', what, actual, planned USING ERRCODE = '40001';
  END IF;
  RETURN actual;
END
$$;
CREATE FUNCTION fencepost.write_step() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE TABLE fencepost.api_key (
    name text NOT NULL COLLATE pg_catalog."C",
    scopes text[] NOT NULL,
    signers text[],
    chains bigint[],
    creates_per_second integer,
    queue_share real,
    created_at timestamp with time zone NOT NULL,
    reads_per_second integer,
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
    name text NOT NULL COLLATE pg_catalog."C",
    slot smallint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT api_secret_digest CHECK ((octet_length(digest) = 32)),
    CONSTRAINT api_secret_slot CHECK ((slot = ANY (ARRAY[1, 2])))
);
CREATE TABLE fencepost.attempt (
    tx_id uuid NOT NULL,
    ordinal integer NOT NULL,
    chain_id bigint NOT NULL,
    tx_hash text COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    gas bigint NOT NULL,
    fee_type text NOT NULL COLLATE pg_catalog."C",
    gas_price numeric(78,0),
    max_fee_per_gas numeric(78,0),
    max_priority_fee_per_gas numeric(78,0),
    raw_transaction bytea,
    created_at timestamp with time zone NOT NULL,
    first_sent_at timestamp with time zone,
    is_foreign boolean DEFAULT false NOT NULL,
    node_signed boolean DEFAULT false NOT NULL,
    is_private boolean DEFAULT false NOT NULL,
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
CREATE TABLE fencepost.chain (
    chain_id bigint NOT NULL,
    genesis_hash text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT chain_genesis_hash CHECK (((octet_length(genesis_hash) = 66) AND (genesis_hash ~ '^0x[0-9a-f]*$'::text)))
);
CREATE TABLE fencepost.charge (
    tx_id uuid NOT NULL,
    charge_id bigint NOT NULL,
    chain_id bigint NOT NULL,
    ordinal integer NOT NULL,
    moves numeric(78,0) NOT NULL,
    counted_in timestamp with time zone NOT NULL,
    value numeric(78,0) NOT NULL,
    cost numeric(78,0) NOT NULL,
    settles boolean NOT NULL,
    CONSTRAINT charge_amounts CHECK ((settles OR ((value >= (0)::numeric) AND (cost >= (0)::numeric)))),
    CONSTRAINT charge_moves CHECK ((moves >= (0)::numeric)),
    CONSTRAINT charge_ordinal CHECK ((ordinal >= 0))
);
ALTER TABLE fencepost.charge ALTER COLUMN charge_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME fencepost.charge_charge_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE fencepost.cluster (
    only_row boolean DEFAULT true NOT NULL,
    secret text NOT NULL,
    CONSTRAINT cluster_only_row CHECK (only_row),
    CONSTRAINT cluster_secret CHECK ((length(secret) >= 64))
);
CREATE TABLE fencepost.commit_marker (
    store_id uuid NOT NULL,
    slot integer NOT NULL,
    marker uuid NOT NULL,
    written_at timestamp with time zone NOT NULL
)
WITH (fillfactor='10', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');
CREATE TABLE fencepost.completion (
    seq bigint NOT NULL,
    epoch integer NOT NULL,
    tx_id uuid NOT NULL,
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    request_id text COLLATE pg_catalog."C",
    nonce bigint,
    state text NOT NULL COLLATE pg_catalog."C",
    sub_state text COLLATE pg_catalog."C",
    settled boolean NOT NULL,
    tx_hash text COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL,
    CONSTRAINT completion_settled CHECK ((settled = (state = ANY (ARRAY['CONFIRMED'::text, 'FAILED_FINAL'::text])))),
    CONSTRAINT completion_state CHECK ((state = ANY (ARRAY['CONFIRMED'::text, 'FAILED_FINAL'::text, 'STUCK'::text, 'REORGED'::text]))),
    CONSTRAINT completion_tx_hash CHECK (((octet_length(tx_hash) = 66) AND (tx_hash ~ '^0x[0-9a-f]*$'::text)))
);
CREATE TABLE fencepost.confirmation (
    chain_id bigint NOT NULL,
    block_number bigint NOT NULL,
    block_hash text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT confirmation_block CHECK (((block_number >= 0) AND (octet_length(block_hash) = 66) AND (block_hash ~ '^0x[0-9a-f]*$'::text)))
)
WITH (autovacuum_vacuum_scale_factor='0.05');
CREATE TABLE fencepost.database_history (
    ordinal integer NOT NULL,
    system_identifier text NOT NULL,
    timeline text NOT NULL,
    wal_position numeric NOT NULL,
    epoch integer NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    may_have_lost boolean DEFAULT false NOT NULL,
    place text COLLATE pg_catalog."C"
)
WITH (fillfactor='50');
CREATE TABLE fencepost.declined (
    tx_id uuid NOT NULL,
    chain_id bigint NOT NULL,
    problem text NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE fencepost.epoch_floor (
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    next_nonce bigint NOT NULL
);
CREATE TABLE fencepost.payload (
    tx_id uuid NOT NULL,
    chain_id bigint NOT NULL,
    to_address text COLLATE pg_catalog."C",
    data bytea NOT NULL,
    value numeric(78,0) NOT NULL,
    gas bigint,
    gas_limit bigint,
    fee_type text COLLATE pg_catalog."C",
    gas_price numeric(78,0),
    max_fee_per_gas numeric(78,0),
    max_priority_fee_per_gas numeric(78,0),
    access_list jsonb,
    metadata jsonb,
    fingerprint bytea NOT NULL,
    allocated_by text,
    allocated_under bigint,
    allocated_at timestamp with time zone,
    CONSTRAINT payload_allocated CHECK ((num_nulls(allocated_by, allocated_under, allocated_at) = ANY (ARRAY[0, 3]))),
    CONSTRAINT payload_data CHECK ((octet_length(data) <= 131072)),
    CONSTRAINT payload_fee_type CHECK ((fee_type = ANY (ARRAY['legacy'::text, 'eip2930'::text, 'eip1559'::text]))),
    CONSTRAINT payload_fees CHECK (((gas_price >= (0)::numeric) AND (max_fee_per_gas >= (0)::numeric) AND (max_priority_fee_per_gas >= (0)::numeric))),
    CONSTRAINT payload_fingerprint CHECK ((octet_length(fingerprint) = 32)),
    CONSTRAINT payload_gas CHECK (((gas >= 0) AND (gas_limit >= 0))),
    CONSTRAINT payload_to_address CHECK (((octet_length(to_address) = 42) AND (to_address ~ '^0x[0-9a-f]*$'::text))),
    CONSTRAINT payload_value CHECK ((value >= (0)::numeric))
);
CREATE TABLE fencepost.step (
    tx_id uuid NOT NULL,
    ordinal integer NOT NULL,
    chain_id bigint NOT NULL,
    event text NOT NULL COLLATE pg_catalog."C",
    from_state text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    sub_state text COLLATE pg_catalog."C",
    node_id text,
    token bigint,
    reason text,
    count integer DEFAULT 1 NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    actor text,
    audit jsonb,
    CONSTRAINT history_ordinal CHECK (((ordinal >= 1) AND (count >= 1)))
)
WITH (fillfactor='90');
CREATE TABLE fencepost.transaction (
    tx_id uuid NOT NULL,
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    request_id text COLLATE pg_catalog."C",
    owns_request boolean DEFAULT true NOT NULL,
    nonce bigint,
    state text NOT NULL COLLATE pg_catalog."C",
    sub_state text COLLATE pg_catalog."C",
    live boolean DEFAULT true NOT NULL,
    outcome text COLLATE pg_catalog."C",
    history_count integer NOT NULL,
    last_event text NOT NULL COLLATE pg_catalog."C",
    attempt_count integer DEFAULT 0 NOT NULL,
    claim_token bigint,
    claim_ordinal integer,
    accepted_ordinal integer,
    submit_attempts integer DEFAULT 0 NOT NULL,
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
    owner text COLLATE pg_catalog."C",
    valid_until timestamp with time zone,
    expired_at timestamp with time zone,
    held_since timestamp with time zone,
    pinned boolean DEFAULT false NOT NULL,
    CONSTRAINT transaction_accepted CHECK (((accepted_ordinal >= 1) AND (accepted_ordinal <= attempt_count))),
    CONSTRAINT transaction_claim CHECK ((((claim_ordinal IS NULL) = (claim_token IS NULL)) AND ((claim_ordinal >= 1) AND (claim_ordinal <= attempt_count)))),
    CONSTRAINT transaction_nonce_range CHECK (((nonce >= 0) AND (nonce <= '9007199254740991'::bigint))),
    CONSTRAINT transaction_outcome CHECK (((live = (outcome IS NULL)) AND ((outcome IS NULL) OR ((outcome = state) AND (state = ANY (ARRAY['CONFIRMED'::text, 'FAILED_FINAL'::text])))))),
    CONSTRAINT transaction_request_id CHECK (((length(request_id) >= 1) AND (length(request_id) <= 255))),
    CONSTRAINT transaction_signed CHECK (((state <> 'TRACKING'::text) OR (attempt_count > 0)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');
CREATE VIEW fencepost.history AS
 SELECT step.tx_id,
    step.ordinal,
    step.chain_id,
    step.event,
    step.from_state,
    step.state,
    step.sub_state,
    step.node_id,
    step.token,
    step.reason,
    step.actor,
    step.audit,
    step.count,
    step.first_at,
    step.last_at
   FROM fencepost.step
UNION ALL
 SELECT s.tx_id,
    s.ordinal,
    s.chain_id,
    s.event,
    s.from_state,
    s.state,
    s.sub_state,
    s.allocated_by AS node_id,
    s.allocated_under AS token,
    NULL::text AS reason,
    NULL::text AS actor,
    NULL::jsonb AS audit,
    1 AS count,
    s.at AS first_at,
    s.at AS last_at
   FROM ( SELECT t.tx_id,
            t.chain_id,
            t.allocated_by,
            t.allocated_under,
            unnest('{1,2,3,4,5}'::integer[]) AS ordinal,
            unnest('{allocate,sign,broadcast,mine,confirm}'::text[]) AS event,
            unnest('{NULL,ALLOCATED,TRACKING,TRACKING,TRACKING}'::text[]) AS from_state,
            unnest('{ALLOCATED,TRACKING,TRACKING,TRACKING,CONFIRMED}'::text[]) AS state,
            unnest('{NULL,PENDING,BROADCAST,MINED,NULL}'::text[]) AS sub_state,
            unnest(ARRAY[t.created_at, t.signed_at, t.broadcast_at, t.mined_at, t.settled_at]) AS at
           FROM fencepost.transaction t
          WHERE (t.allocated_by IS NOT NULL)) s
  WHERE (s.at IS NOT NULL)
UNION ALL
 SELECT payload.tx_id,
    1 AS ordinal,
    payload.chain_id,
    'allocate'::text AS event,
    NULL::text AS from_state,
    'ALLOCATED'::text AS state,
    NULL::text AS sub_state,
    payload.allocated_by AS node_id,
    payload.allocated_under AS token,
    NULL::text AS reason,
    NULL::text AS actor,
    NULL::jsonb AS audit,
    1 AS count,
    payload.allocated_at AS first_at,
    payload.allocated_at AS last_at
   FROM fencepost.payload
  WHERE (payload.allocated_at IS NOT NULL);
CREATE VIEW fencepost.every_step AS
 SELECT history.tx_id,
    history.ordinal,
    history.chain_id,
    history.event,
    history.from_state,
    history.state,
    history.sub_state,
    history.node_id,
    history.token,
    history.reason,
    history.actor,
    history.audit,
    history.count,
    history.first_at,
    history.last_at
   FROM fencepost.history;
CREATE TABLE fencepost.feed (
    only_row boolean DEFAULT true NOT NULL,
    epoch integer NOT NULL,
    last_seq bigint NOT NULL,
    truncated_through bigint NOT NULL,
    epoch_starts_after bigint NOT NULL,
    CONSTRAINT feed_only_row CHECK (only_row),
    CONSTRAINT feed_order CHECK (((epoch >= 1) AND (epoch_starts_after >= 0) AND ((truncated_through >= 0) AND (truncated_through <= last_seq)) AND (epoch_starts_after <= last_seq)))
)
WITH (fillfactor='10', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');
CREATE TABLE fencepost.hole (
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    nonce bigint NOT NULL,
    why text NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL,
    reservation_id uuid,
    since timestamp with time zone NOT NULL,
    owner text COLLATE pg_catalog."C",
    ttl_ms bigint,
    CONSTRAINT hole_nonce CHECK (((nonce >= 0) AND (nonce <= '9007199254740991'::bigint))),
    CONSTRAINT hole_reservation CHECK (((why <> ALL (ARRAY['released'::text, 'expired'::text])) OR (reservation_id IS NOT NULL))),
    CONSTRAINT hole_why CHECK ((why = ANY (ARRAY['released'::text, 'givenUp'::text, 'shiftedDown'::text, 'expired'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');
CREATE TABLE fencepost.intake (
    intake_id bigint NOT NULL,
    tx_id uuid NOT NULL,
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    request_id text COLLATE pg_catalog."C",
    to_address text COLLATE pg_catalog."C",
    data bytea NOT NULL,
    value numeric(78,0) NOT NULL,
    gas bigint,
    fee_type text COLLATE pg_catalog."C",
    gas_price numeric(78,0),
    max_fee_per_gas numeric(78,0),
    max_priority_fee_per_gas numeric(78,0),
    access_list jsonb,
    metadata jsonb,
    fingerprint bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    alias_of uuid,
    owner text COLLATE pg_catalog."C",
    awaits text COLLATE pg_catalog."C",
    expires_at timestamp with time zone,
    approved_at timestamp with time zone,
    allow_no_code boolean DEFAULT false NOT NULL,
    valid_until timestamp with time zone,
    held_since timestamp with time zone,
    holds integer DEFAULT 0 NOT NULL,
    unanswered boolean DEFAULT false NOT NULL,
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
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');
ALTER TABLE fencepost.intake ALTER COLUMN intake_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME fencepost.intake_intake_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE fencepost.key_decision (
    decision_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    actor text NOT NULL,
    detail jsonb NOT NULL,
    at timestamp with time zone NOT NULL
);
ALTER TABLE fencepost.key_decision ALTER COLUMN decision_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME fencepost.key_decision_decision_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE fencepost.key_use (
    owner text NOT NULL COLLATE pg_catalog."C",
    chain_id bigint NOT NULL,
    use_hour timestamp with time zone NOT NULL,
    hour_value numeric(78,0) NOT NULL,
    hour_cost numeric(78,0) NOT NULL,
    day_value numeric(78,0) NOT NULL,
    day_cost numeric(78,0) NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');
CREATE TABLE fencepost.kill (
    kill_id uuid NOT NULL,
    signer text COLLATE pg_catalog."C",
    actor text NOT NULL,
    reason text NOT NULL,
    at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    ended_by text,
    ended_why text,
    CONSTRAINT kill_end CHECK ((num_nonnulls(ended_at, ended_by, ended_why) = ANY (ARRAY[0, 3]))),
    CONSTRAINT kill_signer CHECK (((signer IS NULL) OR ((octet_length(signer) = 42) AND (signer ~ '^0x[0-9a-f]*$'::text))))
);
CREATE TABLE fencepost.lane (
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    owner_instance uuid,
    token bigint DEFAULT 0 NOT NULL,
    acquired_at timestamp with time zone,
    next_nonce bigint,
    suspended boolean DEFAULT false NOT NULL,
    confirmed_total bigint DEFAULT 0 NOT NULL,
    failed_total bigint DEFAULT 0 NOT NULL,
    reconciled_epoch integer DEFAULT 1 NOT NULL,
    suspended_by text COLLATE pg_catalog."C",
    live_allocated bigint DEFAULT 0 NOT NULL,
    live_tracking bigint DEFAULT 0 NOT NULL,
    live_stuck bigint DEFAULT 0 NOT NULL,
    live_confirmed bigint DEFAULT 0 NOT NULL,
    live_failed bigint DEFAULT 0 NOT NULL,
    use_hour timestamp with time zone,
    hour_value numeric(78,0),
    hour_cost numeric(78,0),
    day_value numeric(78,0),
    day_cost numeric(78,0),
    departed_below bigint,
    policy_stamp uuid DEFAULT fencepost.policy_stamp() NOT NULL,
    CONSTRAINT lane_chain_id CHECK ((chain_id > 0)),
    CONSTRAINT lane_next_nonce CHECK ((next_nonce >= 0)),
    CONSTRAINT lane_signer CHECK (((octet_length(signer) = 42) AND (signer ~ '^0x[0-9a-f]*$'::text))),
    CONSTRAINT lane_suspended_by CHECK ((((suspended_by = ANY (ARRAY['OPERATOR'::text, 'HISTORY'::text])) AND suspended) OR (suspended_by IS NULL))),
    CONSTRAINT lane_token CHECK (((token >= 0) AND ((owner_instance IS NULL) OR (token > 0))))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');
CREATE TABLE fencepost.lane_decision (
    decision_id bigint NOT NULL,
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    actor text NOT NULL,
    reason text NOT NULL,
    node_id text,
    token bigint NOT NULL,
    at timestamp with time zone NOT NULL
);
ALTER TABLE fencepost.lane_decision ALTER COLUMN decision_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME fencepost.lane_decision_decision_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE fencepost.left_request (
    left_id uuid NOT NULL,
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL,
    body text NOT NULL,
    owner text COLLATE pg_catalog."C",
    repeatable boolean NOT NULL,
    until timestamp with time zone NOT NULL,
    begun_by uuid,
    answer text
);
CREATE VIEW fencepost.live_count AS
 SELECT (c.state COLLATE "C") AS state,
    l.chain_id,
    l.signer,
    c.count
   FROM (fencepost.lane l
     CROSS JOIN LATERAL ( VALUES ('ALLOCATED'::text,l.live_allocated), ('TRACKING'::text,l.live_tracking), ('STUCK'::text,l.live_stuck), ('CONFIRMED'::text,l.live_confirmed), ('FAILED_FINAL'::text,l.live_failed)) c(state, count))
  WHERE (l.signer >= ''::text);
CREATE TABLE fencepost.migration (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    works_with text
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
    counter bigint DEFAULT 1 NOT NULL,
    dead boolean DEFAULT false NOT NULL,
    chains bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    signers text[] DEFAULT '{}'::text[] NOT NULL COLLATE pg_catalog."C",
    draining boolean DEFAULT false NOT NULL,
    knows_migration text COLLATE pg_catalog."C",
    session_lock integer,
    stands_back boolean DEFAULT false NOT NULL,
    public_key text,
    key_proof text,
    keys_away text[] COLLATE pg_catalog."C",
    CONSTRAINT node_instance_mode CHECK ((mode = ANY (ARRAY['basic'::text, 'worker-queue'::text])))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='100');
CREATE TABLE fencepost.node_report (
    instance_id uuid NOT NULL,
    findings jsonb NOT NULL,
    at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE fencepost.notice (
    notice_id uuid DEFAULT gen_random_uuid() NOT NULL,
    kind text NOT NULL,
    chain_id bigint,
    signer text COLLATE pg_catalog."C",
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
CREATE TABLE fencepost.order_key (
    subject text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    signer text NOT NULL COLLATE pg_catalog."C",
    chain_id bigint NOT NULL,
    fingerprint bytea NOT NULL,
    carried_out_at timestamp with time zone NOT NULL,
    CONSTRAINT order_key_fingerprint CHECK ((length(fingerprint) = 32)),
    CONSTRAINT order_key_key CHECK (((length(key) >= 1) AND (length(key) <= 255)))
);
CREATE TABLE fencepost.policy (
    only_row boolean DEFAULT true NOT NULL,
    version bigint NOT NULL,
    stamp uuid NOT NULL,
    change_id bigint,
    CONSTRAINT policy_none CHECK (((version = 0) = (change_id IS NULL))),
    CONSTRAINT policy_only_row CHECK (only_row)
);
CREATE TABLE fencepost.policy_change (
    change_id bigint NOT NULL,
    node_id text NOT NULL,
    hash text COLLATE pg_catalog."C",
    document jsonb,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    version bigint,
    actor text,
    reason text,
    CONSTRAINT policy_change_none CHECK (((hash IS NULL) = (document IS NULL)))
);
ALTER TABLE fencepost.policy_change ALTER COLUMN change_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME fencepost.policy_change_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE fencepost.pool_choice (
    tx_id uuid NOT NULL,
    request_id text COLLATE pg_catalog."C",
    pool text NOT NULL COLLATE pg_catalog."C",
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C"
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05');
CREATE TABLE fencepost.queued_change (
    tx_id uuid NOT NULL,
    chain_id bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    to_address text COLLATE pg_catalog."C",
    data bytea NOT NULL,
    value numeric(78,0) NOT NULL,
    gas bigint,
    gas_limit bigint NOT NULL,
    fee_type text COLLATE pg_catalog."C",
    gas_price numeric(78,0),
    max_fee_per_gas numeric(78,0),
    max_priority_fee_per_gas numeric(78,0),
    access_list jsonb,
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
    tx_hash text NOT NULL COLLATE pg_catalog."C",
    block_number bigint NOT NULL,
    block_hash text NOT NULL COLLATE pg_catalog."C",
    transaction_index integer NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    gas_used bigint NOT NULL,
    effective_gas_price numeric(78,0),
    contract_address text COLLATE pg_catalog."C",
    beside_gas numeric(78,0),
    beside_gas_unsure boolean,
    CONSTRAINT receipt_block CHECK (((block_number >= 0) AND (octet_length(block_hash) = 66) AND (block_hash ~ '^0x[0-9a-f]*$'::text))),
    CONSTRAINT receipt_contract_address CHECK (((octet_length(contract_address) = 42) AND (contract_address ~ '^0x[0-9a-f]*$'::text))),
    CONSTRAINT receipt_status CHECK ((status = ANY (ARRAY['success'::text, 'reverted'::text]))),
    CONSTRAINT receipt_tx_hash CHECK (((octet_length(tx_hash) = 66) AND (tx_hash ~ '^0x[0-9a-f]*$'::text)))
);
CREATE TABLE fencepost.reservation (
    reservation_id uuid NOT NULL,
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    nonce bigint NOT NULL,
    request_id text COLLATE pg_catalog."C",
    state text DEFAULT 'RESERVED'::text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    tx_id uuid,
    owner text COLLATE pg_catalog."C",
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
)
WITH (fillfactor='70');
CREATE TABLE fencepost.reservation_repair (
    signer text NOT NULL COLLATE pg_catalog."C",
    chain_id bigint NOT NULL,
    tx_id uuid NOT NULL,
    repaired_at timestamp with time zone NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');
CREATE TABLE fencepost.served_chain (
    chain_id bigint NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT served_chain_id CHECK ((chain_id > 0))
);
CREATE TABLE fencepost.spent_request (
    digest bytea NOT NULL,
    chain_id bigint NOT NULL,
    left_at timestamp with time zone NOT NULL,
    CONSTRAINT spent_request_digest CHECK ((octet_length(digest) = 32))
);
CREATE TABLE fencepost.takeover (
    takeover_id bigint NOT NULL,
    chain_id bigint NOT NULL,
    signer text NOT NULL COLLATE pg_catalog."C",
    from_node text,
    to_node text NOT NULL,
    token bigint NOT NULL,
    why text NOT NULL,
    at timestamp with time zone NOT NULL
);
ALTER TABLE fencepost.takeover ALTER COLUMN takeover_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME fencepost.takeover_takeover_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO fencepost.feed VALUES (true, 1, 0, 0, 0);
INSERT INTO fencepost.lane VALUES (1, '0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, 0, NULL, 1, false, 0, 0, 1, NULL, 0, 1, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, '00000000-0000-0000-0000-000000000000');
INSERT INTO fencepost.migration VALUES ('0001_foundation.sql', 'ae344f78ee04783d0a3ce09d3d7000a5e5d04c8dd8c94755d65f4138486d21f6', '2026-11-18 07:07:53.783143+00', NULL);
INSERT INTO fencepost.migration VALUES ('0002_cluster.sql', '119500afe919c60065cb6c0f06f710fe64ad5ac693dd27ce61f7558f0528e61a', '2026-11-18 07:07:53.800118+00', NULL);
INSERT INTO fencepost.migration VALUES ('0003_epochs.sql', '87cecfc669bbc5d8b6f9eaeb912298b186351e4eabefca613fc290eecee8a6d8', '2026-11-18 07:07:53.80168+00', NULL);
INSERT INTO fencepost.migration VALUES ('0004_decisions.sql', '545db5582165ab12cf7d4a99faad5299f21771bcf270e22861506073204aab92', '2026-11-18 07:07:53.81105+00', NULL);
INSERT INTO fencepost.migration VALUES ('0005_create_path.sql', '03ff01fddf7bfece712122ac48cab198593a8f04eb319f4a75a6390a536c4d40', '2026-11-18 07:07:53.819081+00', NULL);
INSERT INTO fencepost.migration VALUES ('0006_reservations.sql', 'f0215528bb41c8aa53fccfe8302adc7c772f187c43af1344398adc8739e496b2', '2026-11-18 07:07:53.859571+00', NULL);
INSERT INTO fencepost.migration VALUES ('0007_node_signed.sql', 'ebb80379f72f47e7f09381a494fa753ed3eb729d01520f160b097563e8abeecd', '2026-11-18 07:07:53.893252+00', NULL);
INSERT INTO fencepost.migration VALUES ('0008_queued_changes.sql', 'dbdcd2700277ee603ab8f1479a0d4a31957b33c0ae9cdc616e40b3648f606a8f', '2026-11-18 07:07:53.945243+00', NULL);
INSERT INTO fencepost.migration VALUES ('0009_skew.sql', '5b49ed5de4b1e083501b993528193fd4c4fe064afff1fed2ef25e1b0e586c519', '2026-11-18 07:07:53.94963+00', '0008_queued_changes.sql');
INSERT INTO fencepost.migration VALUES ('0010_session_locks.sql', '847d0ab8409d3702b005f77fd5e26a7f9340efa76982e9f3acc7bd93776ced43', '2026-11-18 07:07:53.999149+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0011_reads.sql', 'd181813f90219024f56a955d22fd6e7696b91e16f25dafa3051c770e5b68a94a', '2026-11-18 07:07:54.058699+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0012_smaller_indexes.sql', 'f33df208bc3d210c324dcbe505576e486f5eb12940af0919ccc57696fb69daab', '2026-11-18 07:07:54.107197+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0013_counts_on_lanes.sql', 'b67bdb64783de1c25901b6b9fb04473f3f715526290868de92443dad1ebfe7d4', '2026-11-18 07:07:54.162886+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0014_history_on_transactions.sql', '2797215b6e2d4e93ad5260bac90fa03159b8aec76a315a7c1def28d039036278', '2026-11-18 07:07:54.198438+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0015_api_keys.sql', '93a5d9b75ae74aa2f073539f281c68cc93e0ce0e8d74e61e95e4f974809641e8', '2026-11-18 07:07:54.262591+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0016_instance_keys.sql', '6268c047563258615844084336a6306833d77b8a2fc209264470289b68e3ca59', '2026-11-18 07:07:54.26869+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0017_kills.sql', 'bebadb7874da89d49f7e4a2cb832f64153d1ec18764a39484bdac5e84bf7f085', '2026-11-18 07:07:54.282579+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0018_policies.sql', '4acf4d448a8da0640071d5f93758c106d71164f39f893bdf074e7d13c6c4348e', '2026-11-18 07:07:54.327197+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0019_key_use.sql', '23c3a9a0b68d2715cc464c4e429bd392d66115dc57c0a8151495e465ee935cff', '2026-11-18 07:07:54.401876+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0020_reservation_repairs.sql', '0a06be5a90db9d8c42c881a9eb4c774f3f3ed4a8b54bc34c0b3d285c1ec09c59', '2026-11-18 07:07:54.431159+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0021_approval.sql', 'a855f0f13767a72d7891ab1069d34da94c34c7f4ad965c3a82e800ee358ef299', '2026-11-18 07:07:54.469151+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0022_order_keys.sql', '93aa6cb0091394f656db0845111810992d13fef7b89c8b1b8c4e15272ea9969e', '2026-11-18 07:07:54.487139+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0023_pools.sql', 'e948d74676e0e6a8c211c74df30738bbb9f146a48856f5c79ce757a0b41a8f5c', '2026-11-18 07:07:54.53921+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0024_time_and_holds.sql', '78d4a9e5856838bda2ffa4b34b6cf0228a40cf07d38059aa8d5aa1528f1b43f6', '2026-11-18 07:07:54.583167+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0025_left_intents.sql', '2a498fa7e6afdc432424ef401fd3840ffa7ac7d68955c4f3d6c23acfb11aea1b', '2026-11-18 07:07:54.619198+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0026_sight.sql', '16173ae8fad0334c6eab99a0420e4d1719e4d52bdf9592c3ffdde4aa1e37d4bd', '2026-11-18 07:07:54.683189+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0028_left_requests.sql', '13c9d2ab1a7bb701914fbc75310898767b2975ca1cb5ab5f08d92704c40e52d5', '2026-11-18 07:07:54.719156+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0029_place_of_lanes.sql', '1e82dc1460b7c8c3446daa4f9b4aec6afb3f20e3178105e1a17609e5fbb567e7', '2026-11-18 07:07:54.747064+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0030_retention.sql', '8f57675568901f6b94074ba6dbe6365fe99559608ad9d43491918e31624fba3b', '2026-11-18 07:07:54.769765+00', '0009_skew.sql');
INSERT INTO fencepost.migration VALUES ('0031_read_rates.sql', '464a37be4d44c9b851175d1376017009538fac4113fae0caf034a3cf7c322586', '2026-11-18 07:07:54.811153+00', '0030_retention.sql');
INSERT INTO fencepost.migration VALUES ('0032_served_chains.sql', '93345fe0ef4cd0cd6433addb7e4196a8cfafebbc542dd143b86c7176d35c98b2', '2026-11-18 07:07:54.859134+00', '0030_retention.sql');
INSERT INTO fencepost.migration VALUES ('0033_policy_document.sql', 'd37a3c5dd67b3bc26bc5b814e239c6740926ddf5c6f6b4a227ce3e85d4d63418', '2026-11-18 07:07:54.888514+00', '0030_retention.sql');
INSERT INTO fencepost.migration VALUES ('0034_keys_away.sql', '7ca76e03586fbf11c6782f832eb701cd8977671fa3c47ef4ae438ab0b7e922be', '2026-11-18 07:07:54.905221+00', '0030_retention.sql');
INSERT INTO fencepost.migration VALUES ('0035_notices.sql', '6f20f779bf3d1af8e674c7ae35713102e5dbfc8ed0543c04399574feb54ec7c7', '2026-11-18 07:07:54.94235+00', '0030_retention.sql');
INSERT INTO fencepost.migration VALUES ('0036_private_endpoints.sql', '33f39bb1621a7283b585578253730a52e4ac62d247504c9bea046a3b121a332f', '2026-11-18 07:07:54.991113+00', '0009_skew.sql');
INSERT INTO fencepost.payload VALUES ('0190a000-0000-7000-8000-000000000001', 1, NULL, '\x', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '\x0000000000000000000000000000000000000000000000000000000000000000', 'old', 1, '2026-11-01 00:00:00+00');
INSERT INTO fencepost.policy VALUES (true, 0, '00000000-0000-0000-0000-000000000000', NULL);
INSERT INTO fencepost.step VALUES ('0190a000-0000-7000-8000-000000000001', 2, 1, 'sign', 'ALLOCATED', 'TRACKING', 'PENDING', 'old', 1, NULL, 1, '2026-11-01 00:00:01+00', '2026-11-01 00:00:01+00', NULL, NULL);
INSERT INTO fencepost.transaction VALUES ('0190a000-0000-7000-8000-000000000001', 1, '0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, true, 0, 'TRACKING', 'PENDING', true, NULL, 2, 'sign', 1, NULL, NULL, NULL, 0, NULL, NULL, '2026-11-01 00:00:00+00', '2026-11-01 00:00:01+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false);
SELECT pg_catalog.setval('fencepost.charge_charge_id_seq', 1, false);
SELECT pg_catalog.setval('fencepost.intake_intake_id_seq', 1, false);
SELECT pg_catalog.setval('fencepost.key_decision_decision_id_seq', 1, false);
SELECT pg_catalog.setval('fencepost.lane_decision_decision_id_seq', 1, false);
SELECT pg_catalog.setval('fencepost.policy_change_change_id_seq', 1, false);
SELECT pg_catalog.setval('fencepost.takeover_takeover_id_seq', 1, false);
ALTER TABLE ONLY fencepost.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (name);
ALTER TABLE ONLY fencepost.api_secret
    ADD CONSTRAINT api_secret_by_name UNIQUE (name, slot);
ALTER TABLE ONLY fencepost.api_secret
    ADD CONSTRAINT api_secret_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY fencepost.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (tx_id, ordinal);
ALTER TABLE ONLY fencepost.chain
    ADD CONSTRAINT chain_pkey PRIMARY KEY (chain_id);
ALTER TABLE ONLY fencepost.charge
    ADD CONSTRAINT charge_pkey PRIMARY KEY (tx_id, charge_id);
ALTER TABLE ONLY fencepost.cluster
    ADD CONSTRAINT cluster_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY fencepost.commit_marker
    ADD CONSTRAINT commit_marker_pkey PRIMARY KEY (store_id, slot);
ALTER TABLE ONLY fencepost.completion
    ADD CONSTRAINT completion_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY fencepost.confirmation
    ADD CONSTRAINT confirmation_pkey PRIMARY KEY (chain_id, block_number);
ALTER TABLE ONLY fencepost.database_history
    ADD CONSTRAINT database_history_pkey PRIMARY KEY (ordinal);
ALTER TABLE ONLY fencepost.declined
    ADD CONSTRAINT declined_pkey PRIMARY KEY (tx_id);
ALTER TABLE ONLY fencepost.epoch_floor
    ADD CONSTRAINT epoch_floor_pkey PRIMARY KEY (signer, chain_id);
ALTER TABLE ONLY fencepost.feed
    ADD CONSTRAINT feed_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY fencepost.step
    ADD CONSTRAINT history_pkey PRIMARY KEY (tx_id, ordinal);
ALTER TABLE fencepost.step
    ADD CONSTRAINT history_transition CHECK ((((((((event || ' '::text) || COALESCE(from_state, '-'::text)) || ' '::text) || state) || '/'::text) || COALESCE(sub_state, '-'::text)) = ANY (ARRAY['accept - CREATED/-'::text, 'allocate - ALLOCATED/-'::text, 'allocate CREATED ALLOCATED/-'::text, 'refuse - FAILED_FINAL/REJECTED'::text, 'refuse CREATED FAILED_FINAL/REJECTED'::text, 'refuseReusedRequestId - FAILED_FINAL/REQUEST_ID_REUSED'::text, 'refuseReusedRequestId CREATED FAILED_FINAL/REQUEST_ID_REUSED'::text, 'await CREATED CREATED/AWAITING_APPROVAL'::text, 'approve CREATED CREATED/-'::text, 'reject CREATED FAILED_FINAL/REJECTED'::text, 'expire CREATED FAILED_FINAL/EXPIRED'::text, 'expire ALLOCATED FAILED_FINAL/EXPIRED'::text, 'callOff CREATED FAILED_FINAL/CANCELLED'::text, 'sign ALLOCATED TRACKING/PENDING'::text, 'broadcast TRACKING TRACKING/BROADCAST'::text, 'resubmit TRACKING TRACKING/PENDING'::text, 'resubmit TRACKING TRACKING/BROADCAST'::text, 'resubmit TRACKING TRACKING/STALE'::text, 'resubmit TRACKING TRACKING/MINED'::text, 'resubmit TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'resubmit STUCK STUCK/-'::text, 'submitFailed TRACKING TRACKING/PENDING'::text, 'submitFailed TRACKING TRACKING/BROADCAST'::text, 'submitFailed TRACKING TRACKING/STALE'::text, 'submitFailed TRACKING TRACKING/MINED'::text, 'submitFailed TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'submitFailed STUCK STUCK/-'::text, 'stale TRACKING TRACKING/STALE'::text, 'reprice TRACKING TRACKING/PENDING'::text, 'reprice STUCK TRACKING/PENDING'::text, 'cancel TRACKING TRACKING/PENDING'::text, 'cancel STUCK TRACKING/PENDING'::text, 'replace TRACKING TRACKING/PENDING'::text, 'replace STUCK TRACKING/PENDING'::text, 'placeholder TRACKING TRACKING/PENDING'::text, 'placeholder STUCK TRACKING/PENDING'::text, 'amend ALLOCATED ALLOCATED/-'::text, 'decide ALLOCATED ALLOCATED/-'::text, 'decide TRACKING TRACKING/PENDING'::text, 'decide TRACKING TRACKING/BROADCAST'::text, 'decide TRACKING TRACKING/STALE'::text, 'decide TRACKING TRACKING/MINED'::text, 'decide TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'decide STUCK STUCK/-'::text, 'hold CREATED CREATED/-'::text, 'hold CREATED CREATED/AWAITING_APPROVAL'::text, 'hold ALLOCATED ALLOCATED/-'::text, 'hold TRACKING TRACKING/PENDING'::text, 'hold TRACKING TRACKING/BROADCAST'::text, 'hold TRACKING TRACKING/STALE'::text, 'hold TRACKING TRACKING/MINED'::text, 'hold TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'hold STUCK STUCK/-'::text, 'unhold CREATED CREATED/-'::text, 'unhold CREATED CREATED/AWAITING_APPROVAL'::text, 'unhold ALLOCATED ALLOCATED/-'::text, 'unhold TRACKING TRACKING/PENDING'::text, 'unhold TRACKING TRACKING/BROADCAST'::text, 'unhold TRACKING TRACKING/STALE'::text, 'unhold TRACKING TRACKING/MINED'::text, 'unhold TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'unhold STUCK STUCK/-'::text, 'stick TRACKING STUCK/-'::text, 'unstick STUCK TRACKING/PENDING'::text, 'shiftDown ALLOCATED ALLOCATED/-'::text, 'giveUp ALLOCATED FAILED_FINAL/REJECTED'::text, 'loseSight TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'adopt TRACKING TRACKING/BROADCAST'::text, 'sendAnew TRACKING TRACKING/PENDING'::text, 'mine TRACKING TRACKING/MINED'::text, 'mine STUCK TRACKING/MINED'::text, 'withdraw TRACKING TRACKING/PENDING'::text, 'confirm TRACKING CONFIRMED/-'::text, 'revert TRACKING FAILED_FINAL/REVERTED'::text, 'confirmReplacement TRACKING CONFIRMED/REPLACED'::text, 'confirmCancel TRACKING FAILED_FINAL/CANCELLED'::text, 'confirmExpiry TRACKING FAILED_FINAL/EXPIRED'::text, 'loseNonce TRACKING FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY'::text, 'requeue TRACKING ALLOCATED/-'::text, 'reorg CONFIRMED TRACKING/PENDING'::text, 'reorg FAILED_FINAL TRACKING/PENDING'::text]))) NOT VALID;
ALTER TABLE ONLY fencepost.hole
    ADD CONSTRAINT hole_pkey PRIMARY KEY (signer, chain_id, nonce);
ALTER TABLE ONLY fencepost.intake
    ADD CONSTRAINT intake_pkey PRIMARY KEY (intake_id);
ALTER TABLE ONLY fencepost.key_decision
    ADD CONSTRAINT key_decision_pkey PRIMARY KEY (decision_id);
ALTER TABLE ONLY fencepost.key_use
    ADD CONSTRAINT key_use_pkey PRIMARY KEY (owner, chain_id);
ALTER TABLE ONLY fencepost.kill
    ADD CONSTRAINT kill_pkey PRIMARY KEY (kill_id);
ALTER TABLE ONLY fencepost.lane_decision
    ADD CONSTRAINT lane_decision_pkey PRIMARY KEY (decision_id);
ALTER TABLE fencepost.lane
    ADD CONSTRAINT lane_departed_below CHECK ((departed_below >= 0)) NOT VALID;
ALTER TABLE ONLY fencepost.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (signer, chain_id);
ALTER TABLE fencepost.lane
    ADD CONSTRAINT lane_use CHECK ((num_nulls(use_hour, hour_value, hour_cost, day_value, day_cost) = ANY (ARRAY[0, 5]))) NOT VALID;
ALTER TABLE ONLY fencepost.left_request
    ADD CONSTRAINT left_request_pkey PRIMARY KEY (left_id);
ALTER TABLE ONLY fencepost.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY fencepost.node_instance
    ADD CONSTRAINT node_instance_pkey PRIMARY KEY (instance_id);
ALTER TABLE ONLY fencepost.node_report
    ADD CONSTRAINT node_report_pkey PRIMARY KEY (instance_id);
ALTER TABLE ONLY fencepost.notice
    ADD CONSTRAINT notice_pkey PRIMARY KEY (notice_id);
ALTER TABLE ONLY fencepost.order_key
    ADD CONSTRAINT order_key_pkey PRIMARY KEY (subject, key, signer, chain_id);
ALTER TABLE ONLY fencepost.payload
    ADD CONSTRAINT payload_pkey PRIMARY KEY (tx_id);
ALTER TABLE ONLY fencepost.policy_change
    ADD CONSTRAINT policy_change_pkey PRIMARY KEY (change_id);
ALTER TABLE ONLY fencepost.policy
    ADD CONSTRAINT policy_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY fencepost.pool_choice
    ADD CONSTRAINT pool_choice_pkey PRIMARY KEY (tx_id);
ALTER TABLE ONLY fencepost.pool_choice
    ADD CONSTRAINT pool_choice_request UNIQUE (request_id, pool, chain_id);
ALTER TABLE ONLY fencepost.queued_change
    ADD CONSTRAINT queued_change_pkey PRIMARY KEY (tx_id);
ALTER TABLE ONLY fencepost.receipt
    ADD CONSTRAINT receipt_pkey PRIMARY KEY (tx_id);
ALTER TABLE ONLY fencepost.reservation
    ADD CONSTRAINT reservation_pkey PRIMARY KEY (reservation_id);
ALTER TABLE ONLY fencepost.reservation_repair
    ADD CONSTRAINT reservation_repair_pkey PRIMARY KEY (signer, chain_id, tx_id);
ALTER TABLE ONLY fencepost.served_chain
    ADD CONSTRAINT served_chain_pkey PRIMARY KEY (chain_id);
ALTER TABLE ONLY fencepost.spent_request
    ADD CONSTRAINT spent_request_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY fencepost.takeover
    ADD CONSTRAINT takeover_pkey PRIMARY KEY (takeover_id);
ALTER TABLE fencepost.transaction
    ADD CONSTRAINT transaction_expired CHECK (((expired_at IS NULL) OR (expired_at >= valid_until))) NOT VALID;
ALTER TABLE fencepost.transaction
    ADD CONSTRAINT transaction_nonce_bound CHECK (((COALESCE(sub_state, '-'::text) = ANY (ARRAY['CANCELLED'::text, 'EXPIRED'::text])) OR ((nonce IS NULL) = ((state = 'CREATED'::text) OR (COALESCE(sub_state, '-'::text) = ANY (ARRAY['REJECTED'::text, 'REQUEST_ID_REUSED'::text])))))) NOT VALID;
ALTER TABLE ONLY fencepost.transaction
    ADD CONSTRAINT transaction_pkey PRIMARY KEY (tx_id);
ALTER TABLE fencepost.transaction
    ADD CONSTRAINT transaction_status CHECK ((((state || '/'::text) || COALESCE(sub_state, '-'::text)) = ANY (ARRAY['CREATED/-'::text, 'CREATED/AWAITING_APPROVAL'::text, 'ALLOCATED/-'::text, 'TRACKING/PENDING'::text, 'TRACKING/BROADCAST'::text, 'TRACKING/STALE'::text, 'TRACKING/MINED'::text, 'TRACKING/UNKNOWN_SUBMIT_RESULT'::text, 'CONFIRMED/-'::text, 'CONFIRMED/REPLACED'::text, 'FAILED_FINAL/REVERTED'::text, 'FAILED_FINAL/CANCELLED'::text, 'FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY'::text, 'FAILED_FINAL/REJECTED'::text, 'FAILED_FINAL/REQUEST_ID_REUSED'::text, 'FAILED_FINAL/EXPIRED'::text, 'STUCK/-'::text]))) NOT VALID;
ALTER TABLE fencepost.transaction
    ADD CONSTRAINT transaction_steps CHECK (((num_nulls(allocated_by, allocated_under) = 0) OR (num_nonnulls(allocated_by, allocated_under, signed_at, broadcast_at, mined_at, settled_at) = 0))) NOT VALID;
CREATE UNIQUE INDEX attempt_tx_hash_once ON fencepost.attempt USING btree (tx_hash, chain_id);
CREATE INDEX declined_at ON fencepost.declined USING btree (at);
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
CREATE INDEX key_decision_by_name ON fencepost.key_decision USING btree (name, decision_id);
CREATE INDEX lane_decision_by_lane ON fencepost.lane_decision USING btree (signer, chain_id, decision_id);
CREATE INDEX lane_troubled ON fencepost.lane USING btree (signer, chain_id) WHERE (suspended OR (live_stuck > 0));
CREATE INDEX left_request_until ON fencepost.left_request USING btree (until);
CREATE INDEX notice_by_lane ON fencepost.notice USING btree (signer, chain_id, last_seen_at);
CREATE INDEX notice_by_time ON fencepost.notice USING btree (last_seen_at);
CREATE UNIQUE INDEX notice_open_lane ON fencepost.notice USING btree (signer, chain_id) WHERE ((kind = 'EXTERNAL_KEY_USE'::text) AND (acknowledged_at IS NULL));
CREATE UNIQUE INDEX notice_open_node ON fencepost.notice USING btree (node_id) WHERE ((kind = 'NODE_VANISHED'::text) AND (acknowledged_at IS NULL) AND (over_at IS NULL));
CREATE INDEX order_key_carried_out_at ON fencepost.order_key USING btree (carried_out_at);
CREATE UNIQUE INDEX reservation_nonce_once ON fencepost.reservation USING btree (chain_id, signer, nonce) WHERE (state <> 'RELEASED'::text);
CREATE INDEX reservation_open ON fencepost.reservation USING btree (signer, chain_id) WHERE (state = 'RESERVED'::text);
CREATE UNIQUE INDEX reservation_request_once ON fencepost.reservation USING btree (request_id, signer, chain_id) WHERE (request_id IS NOT NULL);
CREATE INDEX spent_request_left_at ON fencepost.spent_request USING btree (left_at);
CREATE INDEX takeover_by_lane ON fencepost.takeover USING btree (signer, chain_id, takeover_id);
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
CREATE TRIGGER write_step INSTEAD OF INSERT OR UPDATE ON fencepost.history FOR EACH ROW EXECUTE FUNCTION fencepost.write_step();
ALTER TABLE ONLY fencepost.api_secret
    ADD CONSTRAINT api_secret_name_fkey FOREIGN KEY (name) REFERENCES fencepost.api_key(name) ON DELETE CASCADE;
