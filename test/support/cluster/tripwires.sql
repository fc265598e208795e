-- Laid into a test's database, beside the tables they watch. They refuse nothing: a write that a fence should have
-- stopped goes through, and is on record. What is checked, is checked at COMMIT: a takeover that committed before is seen.
CREATE SCHEMA tripwire;

CREATE TABLE tripwire.violation (
  what text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Every term that ever was, and whose. Numbered: the clock of the server may be set back.
CREATE TABLE tripwire.term (
  seq bigserial PRIMARY KEY,
  chain_id bigint NOT NULL,
  signer text NOT NULL,
  token bigint NOT NULL,
  instance_id uuid NOT NULL,
  node_id text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Every permission to send, also those that the transaction's row has forgotten by now.
CREATE TABLE tripwire.claim (
  tx_id uuid NOT NULL,
  ordinal integer NOT NULL,
  token bigint NOT NULL,
  node_id text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON tripwire.claim (tx_id, ordinal);

CREATE FUNCTION tripwire.watch_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.token NOT IN (OLD.token, OLD.token + 1) THEN
    INSERT INTO tripwire.violation (what) VALUES (format('token of %s went from %s to %s', NEW.signer, OLD.token, NEW.token));
  END IF;
  IF NEW.owner_instance IS NOT NULL AND NEW.owner_instance IS DISTINCT FROM OLD.owner_instance THEN
    IF NEW.token = OLD.token THEN
      INSERT INTO tripwire.violation (what) VALUES (format('%s changed hands under token %s', NEW.signer, NEW.token));
    END IF;
    INSERT INTO tripwire.term (chain_id, signer, token, instance_id, node_id)
    SELECT NEW.chain_id, NEW.signer, NEW.token, NEW.owner_instance, n.node_id
    FROM fencepost.node_instance n WHERE n.instance_id = NEW.owner_instance;
  END IF;
  IF NEW.next_nonce < OLD.next_nonce THEN
    INSERT INTO tripwire.violation (what) VALUES (format('cursor of %s went back to %s', NEW.signer, NEW.next_nonce));
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER watch_lane AFTER UPDATE ON fencepost.lane FOR EACH ROW EXECUTE FUNCTION tripwire.watch_lane();

CREATE FUNCTION tripwire.watch_claim() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  owner record;
BEGIN
  SELECT l.token, l.owner_instance INTO owner FROM fencepost.lane l
  WHERE l.signer = NEW.signer AND l.chain_id = NEW.chain_id;
  IF owner.token <> NEW.claim_token THEN
    INSERT INTO tripwire.violation (what)
    VALUES (format('%s claimed under token %s while %s was the lane''s', NEW.tx_id, NEW.claim_token, owner.token));
  END IF;
  INSERT INTO tripwire.claim (tx_id, ordinal, token, node_id)
  SELECT NEW.tx_id, NEW.claim_ordinal, NEW.claim_token, n.node_id
  FROM fencepost.node_instance n WHERE n.instance_id = owner.owner_instance;
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER watch_claim AFTER UPDATE ON fencepost.transaction DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.submit_attempts > OLD.submit_attempts) EXECUTE FUNCTION tripwire.watch_claim();

-- Every step of every transaction says under which token it was written.
CREATE FUNCTION tripwire.watch_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  subject record;
  owner record;
BEGIN
  SELECT t.chain_id, t.signer INTO subject FROM fencepost.transaction t WHERE t.tx_id = NEW.tx_id;
  SELECT l.token INTO owner FROM fencepost.lane l WHERE l.signer = subject.signer AND l.chain_id = subject.chain_id;
  IF owner.token <> NEW.token THEN
    INSERT INTO tripwire.violation (what)
    VALUES (format('%s of %s by %s under token %s, behind %s', NEW.event, NEW.tx_id, NEW.node_id, NEW.token, owner.token));
  END IF;
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER watch_step AFTER INSERT OR UPDATE ON fencepost.step DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.token IS NOT NULL) EXECUTE FUNCTION tripwire.watch_step();

-- The steps of an ordinary life stand on the transaction, all under the token of the first. One whose time is taken away
-- has become a row, which is watched above.
CREATE FUNCTION tripwire.watch_ordinary_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  owner record;
BEGIN
  SELECT l.token INTO owner FROM fencepost.lane l WHERE l.signer = NEW.signer AND l.chain_id = NEW.chain_id;
  IF owner.token <> NEW.allocated_under THEN
    INSERT INTO tripwire.violation (what)
    VALUES (format('step on %s by %s under token %s, behind %s', NEW.tx_id, NEW.allocated_by, NEW.allocated_under, owner.token));
  END IF;
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER watch_allocation AFTER INSERT ON fencepost.transaction DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.allocated_under IS NOT NULL) EXECUTE FUNCTION tripwire.watch_ordinary_step();
CREATE CONSTRAINT TRIGGER watch_ordinary_step AFTER UPDATE ON fencepost.transaction DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (
  num_nonnulls(NEW.signed_at, NEW.broadcast_at, NEW.mined_at, NEW.settled_at)
    > num_nonnulls(OLD.signed_at, OLD.broadcast_at, OLD.mined_at, OLD.settled_at)
) EXECUTE FUNCTION tripwire.watch_ordinary_step();
