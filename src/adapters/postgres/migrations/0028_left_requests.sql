-- works with: 0009_skew.sql
--
-- What a node was asked for and only a lane's owner can do, left for an owner that cannot be asked because it is embedded in
-- another process: an operator's order, a reservation. The owner begins it, carries it out under its fence, and writes the
-- answer here for the one that waits. Body and answer are JSON as text, because jsonb holds no NUL. Nothing of it is begun
-- past its time; a row is read within seconds and thrown away later.
CREATE TABLE fencepost.left_request (
  left_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  action text NOT NULL,
  body text NOT NULL,
  owner text COLLATE "C",
  repeatable boolean NOT NULL,
  until timestamptz NOT NULL,
  begun_by uuid,
  answer text
);

CREATE INDEX left_request_until ON fencepost.left_request (until);

-- A nonce that a caller named is given to no other transaction, and its own is moved to no other nonce, whichever node acts
-- for the lane.
ALTER TABLE fencepost.transaction ADD COLUMN pinned boolean NOT NULL DEFAULT false;

-- Keys of orders are thrown away when they are old.
CREATE INDEX order_key_carried_out_at ON fencepost.order_key (carried_out_at);
