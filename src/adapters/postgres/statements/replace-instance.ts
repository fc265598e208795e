import { statement } from "./statement.ts";

/** The instances that a process was before: over for good, and their lanes free. $2: the marker of the transaction, or null. */
export const replaceInstance = statement<unknown>(
  "replace-instance",
  "UPDATE fencepost.node_instance AS n SET dead = true WHERE n.instance_id = ANY ($1::uuid[]) AND fencepost.require_open($2)",
);
