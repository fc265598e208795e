import { statement } from "./statement.ts";

export const announceInstance = statement<unknown>(
  "announce-instance",
  `UPDATE fencepost.node_instance AS n SET chains = $2::bigint[], draining = $3, stands_back = $4
   WHERE n.instance_id = $1`,
);
