-- works with: 0030_retention.sql
--
-- What happened once and a person has to look at: a use of a key that was not sent from here, written by the lane's owner under
-- its fence, and a node that vanished without draining, written by the statement that declares it dead. Repeats before an
-- acknowledgement are counted on the same row; one after it is another row. A row that nobody acknowledged is never removed.
CREATE TABLE fencepost.notice (
  notice_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  kind text NOT NULL,
  chain_id bigint,
  signer text COLLATE "C",
  node_id text,
  first_seen_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  times bigint NOT NULL,
  evidence jsonb NOT NULL,
  over_at timestamptz,
  acknowledged_at timestamptz,
  acknowledged_by text,
  acknowledged_why text,
  acknowledged_key text,
  acknowledged_words bytea,
  CONSTRAINT notice_kind CHECK (kind IN ('EXTERNAL_KEY_USE', 'NODE_VANISHED')),
  CONSTRAINT notice_subject CHECK (
    CASE kind WHEN 'NODE_VANISHED' THEN node_id IS NOT NULL AND num_nonnulls(chain_id, signer) = 0
      ELSE num_nonnulls(chain_id, signer) = 2 AND node_id IS NULL AND over_at IS NULL END
  ),
  CONSTRAINT notice_signer CHECK (signer IS NULL OR (octet_length(signer) = 42 AND signer ~ '^0x[0-9a-f]*$')),
  CONSTRAINT notice_times CHECK (times > 0),
  CONSTRAINT notice_acknowledged CHECK (num_nonnulls(acknowledged_at, acknowledged_by, acknowledged_why) IN (0, 3)),
  CONSTRAINT notice_order CHECK (num_nonnulls(acknowledged_key, acknowledged_words) IN (0, 2))
);

-- One that nobody acknowledged for each lane, and for each node that is not back.
CREATE UNIQUE INDEX notice_open_lane ON fencepost.notice (signer, chain_id)
  WHERE kind = 'EXTERNAL_KEY_USE' AND acknowledged_at IS NULL;

CREATE UNIQUE INDEX notice_open_node ON fencepost.notice (node_id)
  WHERE kind = 'NODE_VANISHED' AND acknowledged_at IS NULL AND over_at IS NULL;

CREATE INDEX notice_by_lane ON fencepost.notice (signer, chain_id, last_seen_at);

CREATE INDEX notice_by_time ON fencepost.notice (last_seen_at);
