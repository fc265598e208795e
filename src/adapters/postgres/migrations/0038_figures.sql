-- works with: 0036_private_endpoints.sql

-- Statistics of lanes by minute and by hour. Each row belongs to the instance that counted it and has its whole count, so that
-- no two nodes write the same row, and a repeated write changes nothing. An empty signer: all lanes of the chain on that instance.
-- Only what is summed in the database has a column; the rest is in `detail`.
CREATE TABLE fencepost.figures (
  signer text COLLATE "C" NOT NULL,
  step_seconds integer NOT NULL,
  at timestamptz NOT NULL,
  chain_id bigint NOT NULL,
  instance_id uuid NOT NULL,
  created integer NOT NULL,
  completed integer NOT NULL,
  failed integer NOT NULL,
  fees numeric NOT NULL,
  detail jsonb NOT NULL,
  PRIMARY KEY (signer, step_seconds, at, chain_id, instance_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- Finds old rows.
CREATE INDEX figures_by_time ON fencepost.figures (step_seconds, at);

-- Ranks of the signers that pay most: one row for each lane, day (UTC) and instance. `ranks` has the fees from the start of the day to
-- the end of each hour, rounded, so that any hours of a day are the difference of two elements. They only select the signers whose
-- exact amounts are then read from `figures`: summing the hours of ten thousand lanes takes seconds.
CREATE TABLE fencepost.spend (
  signer text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  chain_id bigint NOT NULL,
  instance_id uuid NOT NULL,
  ranks double precision[] NOT NULL,
  PRIMARY KEY (signer, at, chain_id, instance_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- Finds old rows, and all signers of a range of days.
CREATE INDEX spend_by_day ON fencepost.spend (at);

-- ABIs by which calls, logs and errors are shown to people. One document for all nodes.
CREATE TABLE fencepost.abi_document (
  only_row boolean PRIMARY KEY DEFAULT true,
  items jsonb NOT NULL,
  changed_at timestamptz NOT NULL,
  changed_by text NOT NULL,
  CONSTRAINT abi_document_only_row CHECK (only_row)
);
