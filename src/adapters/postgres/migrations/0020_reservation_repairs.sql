-- works with: 0009_skew.sql
--
-- Of the reservation whose expiry left the hole: whose it was, and how long it was kept. Its caller's transaction is looked
-- for through as long again. Null: no reservation expired there, or a node of the release before wrote it.
ALTER TABLE fencepost.hole ADD COLUMN owner text COLLATE "C", ADD COLUMN ttl_ms bigint;

-- When a lane put a placeholder at the nonce of an expired reservation by itself: how many of these it may pay for in one
-- hour is limited, and its next owner goes on counting. Rows of earlier hours are removed; the histories of the placeholders
-- keep who reserved and why.
CREATE TABLE fencepost.reservation_repair (
  signer text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  tx_id uuid NOT NULL,
  repaired_at timestamptz NOT NULL,
  PRIMARY KEY (signer, chain_id, tx_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
