-- works with: 0009_skew.sql
--
-- An attempt that was given to private endpoints alone (`send: "only"`), and is not to be sent to any other until an operator or
-- `publicAfter` discloses its transaction. Set with the claim, so that the next owner of the lane keeps to it.
ALTER TABLE fencepost.attempt ADD COLUMN is_private boolean NOT NULL DEFAULT false;
