import { statement } from "./statement.ts";

/** What happened to a transaction, first to last. */
export const readHistory = statement<HistoryRow>(
  "read-history",
  `SELECT h.ordinal, h.event, h.from_state, h.state, h.sub_state, h.node_id, h.token, h.reason, h.actor, h.audit,
     h.count, h.first_at, h.last_at
   FROM fencepost.history AS h
   WHERE h.tx_id = $1
   ORDER BY h.ordinal`,
);

export interface HistoryRow {
  readonly ordinal: number;
  readonly event: string;
  readonly from_state: string | null;
  readonly state: string;
  readonly sub_state: string | null;
  readonly node_id: string | null;
  readonly token: number | null;
  readonly reason: string | null;
  readonly actor: string | null;
  readonly audit: Readonly<Record<string, unknown>> | null;
  readonly count: number;
  readonly first_at: Date;
  readonly last_at: Date;
}
