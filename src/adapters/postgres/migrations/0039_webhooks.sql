-- works with: 0036_private_endpoints.sql

-- Receivers of webhooks for outcomes. `position`: every outcome up to it is delivered or filtered out; `done`: those above it that
-- are delivered. `owner_instance` and `token`: the term of the instance that delivers. Each change by a person ends the term, too.
-- A filter that is null selects everything. The secret is not stored: `secret_id` only shows which nodes can derive it.
CREATE TABLE fencepost.subscriber (
  subscriber_id uuid PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  url text NOT NULL,
  signers text[],
  chains bigint[],
  keys text[],
  states text[],
  generation integer NOT NULL DEFAULT 1,
  rotated_until timestamptz,
  secret_id text NOT NULL,
  give_up_after_ms bigint NOT NULL,
  paused_by text,
  paused_why text,
  paused_at timestamptz,
  epoch integer NOT NULL,
  position bigint NOT NULL,
  done bigint[] NOT NULL DEFAULT '{}',
  failing_since timestamptz,
  last_status integer,
  last_reason text,
  last_at timestamptz,
  next_try_at timestamptz,
  delivered_at timestamptz,
  owner_instance uuid,
  token bigint NOT NULL DEFAULT 0,
  created_by text,
  created_at timestamptz NOT NULL,
  changed_by text NOT NULL,
  changed_at timestamptz NOT NULL,
  CONSTRAINT subscriber_name UNIQUE (name),
  CONSTRAINT subscriber_paused_by CHECK (paused_by IN ('OPERATOR', 'GONE', 'GAVE_UP')),
  CONSTRAINT subscriber_paused CHECK ((paused_by IS NULL) = (paused_why IS NULL) AND (paused_by IS NULL) = (paused_at IS NULL)),
  CONSTRAINT subscriber_paused_is_free CHECK (paused_by IS NULL OR owner_instance IS NULL),
  CONSTRAINT subscriber_position CHECK (position >= 0 AND generation >= 1)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- What people did to subscribers: who, when and why.
CREATE TABLE fencepost.subscriber_decision (
  subscriber_id uuid NOT NULL,
  name text NOT NULL,
  action text NOT NULL,
  actor text NOT NULL,
  detail jsonb,
  at timestamptz NOT NULL
);
