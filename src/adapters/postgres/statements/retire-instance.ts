import { statement } from "./statement.ts";

export const retireInstance = statement<unknown>(
  "retire-instance",
  "UPDATE fencepost.node_instance AS n SET dead = true WHERE n.instance_id = $1",
);
