/**
 * The session locks of this schema that are held now, by key. Looked for, never tried: who tries a lock may get it, and
 * then looks like the one that held it. Any role sees the locks of all sessions here, unlike their other properties.
 */
export const SESSION_LOCKS = `
  SELECT l.objid::integer AS key, l.pid AS session FROM pg_catalog.pg_locks AS l
  WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.mode = 'ExclusiveLock'
    AND l.classid = 'fencepost.node_instance'::regclass
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())`;
