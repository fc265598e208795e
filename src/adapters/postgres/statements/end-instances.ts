import { statement } from "./statement.ts";

/** Every instance but the one that begins now ($1) belongs to a history that is over. Its process registers again. */
export const endInstances = statement<unknown>(
  "end-instances",
  "UPDATE fencepost.node_instance AS n SET dead = true WHERE n.instance_id <> $1 AND NOT n.dead",
);
