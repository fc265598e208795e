-- works with: 0009_skew.sql
--
-- The key of the advisory lock that a session of the instance holds for as long as the process lives, once others can see
-- it in pg_locks. Null: it holds none, and only its heartbeat tells whether it lives.
ALTER TABLE fencepost.node_instance ADD COLUMN session_lock integer;

-- It lost its lanes because nothing was heard of it, and leaves them for a while to others who can serve them.
ALTER TABLE fencepost.node_instance ADD COLUMN stands_back boolean NOT NULL DEFAULT false;
