import { statement } from "./statement.ts";

export const readClusterSecret = statement<{ readonly secret: string }>(
  "read-cluster-secret",
  "SELECT c.secret FROM fencepost.cluster AS c",
);
