-- works with: 0036_private_endpoints.sql

-- Messages that callers asked to have signed: what was shown, the asker, the rule that allowed it, and the signature. A row is
-- committed before the key signs. Request ids are of this table alone: a transaction may have the same one.
CREATE TABLE fencepost.signature (
  signature_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  request_id text NOT NULL,
  owner text,
  kind text NOT NULL,
  domain text,
  digest bytea NOT NULL,
  message jsonb NOT NULL,
  state text NOT NULL,
  rule text NOT NULL,
  amount numeric NOT NULL,
  signature bytea,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  signed_at timestamptz,
  decided_at timestamptz,
  decided_by text,
  decided_why text,
  node_id text,
  token bigint,
  CONSTRAINT signature_request UNIQUE (signer, chain_id, request_id),
  CONSTRAINT signature_kind CHECK (kind IN ('personal', 'typedData')),
  CONSTRAINT signature_state CHECK (state IN ('AWAITING_APPROVAL', 'ALLOWED', 'SIGNED', 'REJECTED', 'EXPIRED')),
  CONSTRAINT signature_signed CHECK ((state = 'SIGNED') = (signature IS NOT NULL) AND (signature IS NULL) = (signed_at IS NULL)),
  CONSTRAINT signature_awaits CHECK (state NOT IN ('AWAITING_APPROVAL', 'REJECTED', 'EXPIRED') OR expires_at IS NOT NULL),
  CONSTRAINT signature_digest CHECK (length(digest) = 32)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX signature_by_signer ON fencepost.signature (signer, signature_id);
CREATE INDEX signature_by_owner ON fencepost.signature (owner, signature_id);
CREATE INDEX signature_by_domain ON fencepost.signature (domain, signature_id);
-- Those that somebody has to decide about.
CREATE INDEX signature_awaiting ON fencepost.signature (signature_id) WHERE state = 'AWAITING_APPROVAL';

-- Signatures and amounts that each rule about messages has counted in the current hour and day, under the lane's lock.
CREATE TABLE fencepost.message_use (
  signer text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  rule text COLLATE "C" NOT NULL,
  use_hour timestamptz NOT NULL,
  hour_amount numeric NOT NULL,
  hour_signatures bigint NOT NULL,
  day_amount numeric NOT NULL,
  day_signatures bigint NOT NULL,
  PRIMARY KEY (signer, chain_id, rule)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
