-- works with: 0009_skew.sql
--
-- That is so until something has left by retention. An older program does not look here before it gives a nonce, and would do
-- a late repeat a second time: before the first row leaves, the ledger's word above is taken back, so that none registers any
-- more (src/adapters/postgres/stores/old-rows.ts).

-- Request ids of transactions that are kept no more, as hashes: of a lane, and of a pool where one was asked.
CREATE TABLE fencepost.spent_request (
  digest bytea PRIMARY KEY,
  chain_id bigint NOT NULL,
  left_at timestamptz NOT NULL,
  CONSTRAINT spent_request_digest CHECK (octet_length(digest) = 32)
);

-- Hashes are thrown away when they are old, where somebody wants that.
CREATE INDEX spent_request_left_at ON fencepost.spent_request (left_at);

-- One above the highest nonce of a transaction that is kept no more; NULL: nothing of the lane ever left. All nonces below it
-- were mined beyond any reorg. It also says whether a request id of the lane may stand among the hashes alone.
ALTER TABLE fencepost.lane ADD COLUMN departed_below bigint;

ALTER TABLE fencepost.lane ADD CONSTRAINT lane_departed_below CHECK (departed_below >= 0) NOT VALID;

-- What a request id is known by once its transaction is gone. `scope` is the lane's signer, or 'pool ' and the pool's name.
-- Its length stands before it, so that no two requests are written in the same way.
CREATE FUNCTION fencepost.request_digest(chain_id bigint, scope text, request_id text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(chain_id::text || ' ' || octet_length(scope)::text || ' ' || scope || ' ' || request_id, 'UTF8'))
$$;
