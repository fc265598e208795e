-- works with: 0009_skew.sql
--
-- An intent that a node left for the owner of its lane. While it is unanswered, its sender waits to hear what becomes of it
-- and nobody has been told that it is accepted: an owner that has to refuse it removes it, and says why in another place.
ALTER TABLE fencepost.intake ADD COLUMN unanswered boolean NOT NULL DEFAULT false;

-- Why such an intent was removed, for its sender alone. A problem is text, because jsonb holds no NUL, which a contract may
-- put into its reason. Read within seconds, and thrown away later.
CREATE TABLE fencepost.declined (
  tx_id uuid PRIMARY KEY,
  chain_id bigint NOT NULL,
  problem text NOT NULL,
  at timestamptz NOT NULL
);

CREATE INDEX declined_at ON fencepost.declined (at);
