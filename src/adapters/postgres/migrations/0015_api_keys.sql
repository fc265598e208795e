-- works with: 0009_skew.sql
--
-- Who asked for what: the name of the API key. Null: no key was asked for, or the row is from before keys owned anything.
ALTER TABLE fencepost.transaction ADD COLUMN owner text COLLATE "C";
ALTER TABLE fencepost.intake ADD COLUMN owner text COLLATE "C";
ALTER TABLE fencepost.reservation ADD COLUMN owner text COLLATE "C";

-- API keys that are managed while the nodes run. Null in a limit: none.
CREATE TABLE fencepost.api_key (
  name text COLLATE "C" PRIMARY KEY,
  scopes text[] NOT NULL,
  signers text[],
  chains bigint[],
  creates_per_second integer,
  queue_share real,
  created_at timestamptz NOT NULL,
  CONSTRAINT api_key_name CHECK (name ~ '^[A-Za-z0-9_.-]{1,64}$'),
  CONSTRAINT api_key_scopes CHECK (
    scopes <@ ARRAY['read', 'submit', 'reserve', 'operate', 'approve', 'sign', 'admin'] AND cardinality(scopes) > 0
  ),
  CONSTRAINT api_key_signers CHECK (cardinality(signers) > 0),
  CONSTRAINT api_key_chains CHECK (cardinality(chains) > 0),
  CONSTRAINT api_key_creates_per_second CHECK (creates_per_second > 0),
  CONSTRAINT api_key_queue_share CHECK (queue_share > 0 AND queue_share <= 1)
);

-- What opens them: SHA-256 of each secret, never the secret. Two of one key while it is rotated.
CREATE TABLE fencepost.api_secret (
  digest bytea PRIMARY KEY,
  name text COLLATE "C" NOT NULL REFERENCES fencepost.api_key ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  CONSTRAINT api_secret_digest CHECK (octet_length(digest) = 32)
);
CREATE INDEX api_secret_by_name ON fencepost.api_secret (name);

-- What people decided about keys. Appended in the transaction that did it, and kept when the key is gone.
CREATE TABLE fencepost.key_decision (
  decision_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  actor text NOT NULL,
  detail jsonb NOT NULL,
  at timestamptz NOT NULL
);
CREATE INDEX key_decision_by_name ON fencepost.key_decision (name, decision_id);
