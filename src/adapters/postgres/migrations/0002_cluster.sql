-- Many nodes: what each instance can serve, so that the others can place lanes and find the way to an owner. Advice only;
-- no write depends on it. The signers never change while an instance lives; chains and draining do.
ALTER TABLE fencepost.node_instance
  ADD COLUMN chains bigint[] NOT NULL DEFAULT '{}',
  ADD COLUMN signers text[] COLLATE "C" NOT NULL DEFAULT '{}',
  ADD COLUMN draining boolean NOT NULL DEFAULT false;

-- How the nodes of one database recognise each other: whoever can read this row could write the lanes anyway.
CREATE TABLE fencepost.cluster (
  only_row boolean PRIMARY KEY DEFAULT true,
  secret text NOT NULL,
  CONSTRAINT cluster_only_row CHECK (only_row),
  CONSTRAINT cluster_secret CHECK (length(secret) >= 64)
);
INSERT INTO fencepost.cluster (secret)
VALUES (replace(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));
