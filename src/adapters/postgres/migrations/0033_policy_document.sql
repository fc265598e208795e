-- works with: 0030_retention.sql
--
-- The policy document in force is one for all nodes: a file seeds an empty database, and whoever has `admin` changes it.
-- Nodes of the release before still work by their own files, and note them below without a version.
ALTER TABLE fencepost.policy_change
  ADD COLUMN version bigint,
  ADD COLUMN actor text,
  ADD COLUMN reason text;

-- `stamp` is random for each change, since versions can repeat after a failover that lost one. `change_id` NULL: nobody has
-- applied a document yet.
CREATE TABLE fencepost.policy (
  only_row boolean PRIMARY KEY DEFAULT true,
  version bigint NOT NULL,
  stamp uuid NOT NULL,
  change_id bigint,
  CONSTRAINT policy_only_row CHECK (only_row),
  CONSTRAINT policy_none CHECK ((version = 0) = (change_id IS NULL))
);

-- The newest document that any node worked by. A node without a file noted that it had none: that took nothing back for the
-- others, and takes nothing back here.
INSERT INTO fencepost.policy (version, stamp, change_id)
SELECT count(c.change_id), '00000000-0000-0000-0000-000000000000', max(c.change_id)
FROM (
  SELECT p.change_id FROM fencepost.policy_change AS p WHERE p.document IS NOT NULL ORDER BY p.change_id DESC LIMIT 1
) AS c;

UPDATE fencepost.policy_change AS c
SET version = 1, actor = 'node:' || c.node_id, reason = 'the policies that this node worked by before the database kept them'
FROM fencepost.policy AS p
WHERE c.change_id = p.change_id;

-- Wei that was paid beside gas × price, for blobs or to a rollup, and whether that may be more. NULL: none.
ALTER TABLE fencepost.receipt ADD COLUMN beside_gas numeric(78, 0), ADD COLUMN beside_gas_unsure boolean;

-- Which document a commit has to judge by: compared by the statement that locks the lane, so that a change that commits
-- first is obeyed. A change puts its stamp on every lane (src/adapters/postgres/commit/policies.ts).
ALTER TABLE fencepost.lane ADD COLUMN policy_stamp uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';

-- Read by a statement of its own, behind the lock of the table that an INSERT needs and a change holds. Thus no lane is born
-- with the stamp of a document that is in force no more, whichever release inserts it.
CREATE FUNCTION fencepost.policy_stamp() RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT p.stamp FROM fencepost.policy AS p WHERE p.only_row);
END
$$;

ALTER TABLE fencepost.lane ALTER COLUMN policy_stamp SET DEFAULT fencepost.policy_stamp();
