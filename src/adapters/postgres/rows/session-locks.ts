/**
 * SQL: the session locks of this schema that are held now, by key. The server's list of locks is read. Taking a lock to
 * test it would be wrong: if the lock is free, the testing process would get it and look like its owner. Any role can
 * see the locks of all sessions, unlike other properties of sessions.
 */
export const SESSION_LOCKS = `
  SELECT l.objid::integer AS key, l.pid AS session FROM pg_catalog.pg_locks AS l
  WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.mode = 'ExclusiveLock'
    AND l.classid = 'fencepost.node_instance'::regclass
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())`;
