-- Nonces kept for callers that sign themselves, and nonces that nothing holds. Both are written under the lane's lock
-- like everything else of a lane, so whether a nonce is reserved, free or taken has one answer at any time.
CREATE TABLE fencepost.reservation (
  reservation_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  nonce bigint NOT NULL,
  request_id text COLLATE "C",
  state text COLLATE "C" NOT NULL DEFAULT 'RESERVED',
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- The caller's transaction, or the one that closed the hole left by an expiry.
  tx_id uuid,
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

CREATE TABLE fencepost.hole (
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  nonce bigint NOT NULL,
  why text COLLATE "C" NOT NULL,
  detail text NOT NULL,
  reservation_id uuid,
  since timestamptz NOT NULL,
  PRIMARY KEY (signer, chain_id, nonce),
  CONSTRAINT hole_nonce CHECK (nonce BETWEEN 0 AND 9007199254740991),
  CONSTRAINT hole_why CHECK (why IN ('released', 'givenUp', 'shiftedDown', 'expired')),
  CONSTRAINT hole_reservation CHECK (why NOT IN ('released', 'expired') OR reservation_id IS NOT NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
