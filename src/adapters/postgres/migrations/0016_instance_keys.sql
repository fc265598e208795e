-- works with: 0009_skew.sql
--
-- Nodes know each other by key pairs: each process keeps the private half to itself, and publishes the public half here. What
-- stood in fencepost.cluster was enough to send a create to any node, for everybody who could read it, a backup included. The
-- table stays, empty: a node of the release before that reads it finds no secret, and then takes nothing from other nodes.
ALTER TABLE fencepost.node_instance
  ADD COLUMN public_key text,
  ADD COLUMN key_proof text;

DELETE FROM fencepost.cluster;
