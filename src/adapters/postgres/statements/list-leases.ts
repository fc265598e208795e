import { statement } from "./statement.ts";

/** Who holds what. The lanes of a dead instance are free, so they have no owner here. */
export const listLeases = statement<LeaseRow>(
  "list-leases",
  `SELECT l.chain_id, l.signer, l.token, l.acquired_at, o.instance_id, o.node_id, o.url, o.expires_at
   FROM fencepost.lane AS l
   LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance AND NOT o.dead
   ORDER BY l.chain_id, l.signer`,
);

export interface LeaseRow extends OwnerColumns {
  readonly chain_id: number;
  readonly signer: string;
  readonly token: number;
  readonly acquired_at: Date | null;
}

export interface OwnerColumns {
  readonly instance_id: string | null;
  readonly node_id: string | null;
  readonly url: string | null;
  readonly expires_at: Date | null;
}
