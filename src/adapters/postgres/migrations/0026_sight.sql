-- works with: 0009_skew.sql
--
-- What people look at who look at everything at once. Each index holds only what is out of the ordinary, so that it is small,
-- and a commit of the ordinary kind changes none of its columns and stays a heap-only update.
CREATE INDEX CONCURRENTLY IF NOT EXISTS lane_troubled ON fencepost.lane (signer, chain_id)
  WHERE suspended OR live_stuck > 0;

CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_held ON fencepost.transaction (chain_id, signer, nonce)
  WHERE live AND held_since IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS intake_awaiting ON fencepost.intake (intake_id)
  WHERE awaits IS NOT NULL AND approved_at IS NULL AND alias_of IS NULL;

-- Lanes that came from one node to another, written in the transaction that takes them. The first owner of a lane took it from
-- nobody, and is not here. The oldest are thrown away when a node registers.
CREATE TABLE fencepost.takeover (
  takeover_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text COLLATE "C" NOT NULL,
  from_node text,
  to_node text NOT NULL,
  token bigint NOT NULL,
  why text NOT NULL,
  at timestamptz NOT NULL
);

-- Who had a lane before that was given back: the last one that took it.
CREATE INDEX takeover_by_lane ON fencepost.takeover (signer, chain_id, takeover_id);

-- What a node alone knows of what needs a person: its endpoints, its signers. One row for each instance, replaced when it
-- changes, so that any node can show what all of them know.
CREATE TABLE fencepost.node_report (
  instance_id uuid PRIMARY KEY,
  findings jsonb NOT NULL,
  at timestamptz NOT NULL
) WITH (fillfactor = 50);
