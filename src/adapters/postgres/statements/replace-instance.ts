import { statement } from "./statement.ts";

/** The instance that a process was before: over for good, and its lanes free. $2: the marker of the transaction, or null. */
export const replaceInstance = statement<unknown>(
  "replace-instance",
  "UPDATE fencepost.node_instance AS n SET dead = true WHERE n.instance_id = $1 AND fencepost.require_open($2)",
);
