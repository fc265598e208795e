-- works with: 0009_skew.sql
--
-- Which database and which table the newest registration found the lanes in, as PostgreSQL numbers them. A dump that is loaded
-- into the server it was taken from changes neither the system nor the timeline, and the WAL position has only grown; but what
-- is made anew has another number. NULL: a program from before this migration registered last.
ALTER TABLE fencepost.database_history ADD COLUMN place text COLLATE "C";
