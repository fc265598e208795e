-- A changed history of the database: every lane is compared with the chain before it acts again, and the row remembers
-- in which epoch of the feed that was last done. A lane that is new to the database owes it too, except in the first epoch.
ALTER TABLE fencepost.lane
  ADD COLUMN reconciled_epoch integer NOT NULL DEFAULT 1,
  -- Who stopped it: an operator, or the loss of commits.
  ADD COLUMN suspended_by text COLLATE "C",
  ADD CONSTRAINT lane_suspended_by CHECK (suspended_by IN ('OPERATOR', 'HISTORY') AND suspended OR suspended_by IS NULL);
UPDATE fencepost.lane SET
  reconciled_epoch = (SELECT epoch FROM fencepost.feed),
  suspended_by = CASE WHEN suspended THEN 'OPERATOR' END;

-- Whether acknowledged commits may be missing from the history that an epoch began with.
ALTER TABLE fencepost.database_history ADD COLUMN may_have_lost boolean NOT NULL DEFAULT false;
