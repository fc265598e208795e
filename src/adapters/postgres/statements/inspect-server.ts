import { statement } from "./statement.ts";

/** What a server must be before anything is entrusted to it. Works on a standby too, to say that it is one. */
export const inspectServer = statement<ServerRow>(
  "inspect-server",
  `SELECT
     gen_random_uuid() AS store_id,
     current_setting('server_version_num')::integer AS version,
     current_setting('synchronous_commit') AS synchronous_commit,
     current_setting('server_encoding') AS encoding,
     pg_is_in_recovery() AS standby,
     (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
     CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline,
     CASE WHEN pg_is_in_recovery() THEN 0 ELSE (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric END AS wal_position`,
);

export interface ServerRow {
  /** A name for this connection to the database, from its own chance. */
  readonly store_id: string;
  readonly version: number;
  readonly synchronous_commit: string;
  readonly encoding: string;
  readonly standby: boolean;
  readonly system_identifier: string;
  readonly timeline: string;
  readonly wal_position: bigint;
}
