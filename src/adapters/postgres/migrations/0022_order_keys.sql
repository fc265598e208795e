-- works with: 0009_skew.sql
--
-- Which operators' orders were carried out under which Idempotency-Key: written in the transaction that carries the order
-- out, so that a repeat after silence finds it and does nothing. The subject is the id of the transaction that the order
-- was addressed to, or nothing: the lane itself. The fingerprint is of the order's words; other words under the same key
-- are refused.
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

-- The caller's word that the receiver of its call data need not have code: looked at when the row gets its nonce.
ALTER TABLE fencepost.intake ADD COLUMN allow_no_code boolean NOT NULL DEFAULT false;
