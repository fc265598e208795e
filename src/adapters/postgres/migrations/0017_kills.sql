-- works with: 0009_skew.sql
--
-- Orders to stop: of one signer on all its chains, or of everything. Outside the lanes, so that neither a lock of a lane nor
-- its owner stands in the way. A row is never removed: one that is missing has not been written yet, or was lost with the
-- history of the database; an order ends with its `ended_at` alone. A node of the release before does not know of them.
CREATE TABLE fencepost.kill (
  kill_id uuid PRIMARY KEY,
  signer text COLLATE "C",
  actor text NOT NULL,
  reason text NOT NULL,
  at timestamptz NOT NULL,
  ended_at timestamptz,
  ended_by text,
  ended_why text,
  CONSTRAINT kill_signer CHECK (signer IS NULL OR (octet_length(signer) = 42 AND signer ~ '^0x[0-9a-f]*$')),
  CONSTRAINT kill_end CHECK (num_nonnulls(ended_at, ended_by, ended_why) IN (0, 3))
);
