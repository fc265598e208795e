-- Which chain this is, where lanes stood when the feed's epoch began, and payloads that a node signs with its own key.

-- The first block of each chain, as it was first seen: whatever begins differently is another chain under the same number.
CREATE TABLE fencepost.chain (
  chain_id bigint PRIMARY KEY,
  genesis_hash text COLLATE "C" NOT NULL,
  CONSTRAINT chain_genesis_hash CHECK (octet_length(genesis_hash) = 66 AND genesis_hash ~ '^0x[0-9a-f]*$')
);

-- Lower nonces of a lane were given out in a history of the database that may have lost commits since. Written with each
-- new epoch; a lane without a row has seen no other.
CREATE TABLE fencepost.epoch_floor (
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  next_nonce bigint NOT NULL,
  PRIMARY KEY (signer, chain_id)
);

ALTER TABLE fencepost.attempt
  -- The node holds the key: there are no bytes here, and no hash before it has answered or was found out.
  ADD COLUMN node_signed boolean NOT NULL DEFAULT false,
  ALTER COLUMN tx_hash DROP NOT NULL,
  DROP CONSTRAINT attempt_bytes,
  ADD CONSTRAINT attempt_bytes CHECK (raw_transaction IS NOT NULL OR kind = 'external' OR node_signed),
  ADD CONSTRAINT attempt_hash CHECK (tx_hash IS NOT NULL OR node_signed);
