-- works with: 0036_private_endpoints.sql

-- Domain that a signature is for: an EIP-712 domain's name or contract, or the domain of a sign-in.
ALTER TABLE fencepost.signature ADD COLUMN domain text;

CREATE INDEX CONCURRENTLY IF NOT EXISTS signature_by_domain
  ON fencepost.signature (domain, signature_id);
-- Lists of one state, newest first. The index of those that wait for approval is a part of it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS signature_by_state
  ON fencepost.signature (state, signature_id);
DROP INDEX fencepost.signature_awaiting;

-- Finds old rows. They have no key of their own.
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriber_decision_by_time
  ON fencepost.subscriber_decision (at);
