-- works with: 0009_skew.sql
--
-- Which lane a pool gave a request, written with the nonce: whoever comes second with the same request id, on whichever
-- lane, finds this row or waits for it, and takes no nonce. A row for each transaction that a pool was asked for, for as
-- long as the transaction is kept; without a request id it only tells which pool that was. Rows are inserted in the order of
-- the constraint's columns, so that two commits that want the same ones wait for each other in one direction.
CREATE TABLE fencepost.pool_choice (
  tx_id uuid PRIMARY KEY,
  request_id text COLLATE "C",
  pool text COLLATE "C" NOT NULL,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  CONSTRAINT pool_choice_request UNIQUE (request_id, pool, chain_id)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);
