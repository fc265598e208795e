import { statement } from "./statement.ts";

export const readSigners = statement<{ readonly signer: string }>(
  "read-signers",
  "SELECT unnest(n.signers) AS signer FROM fencepost.node_instance AS n WHERE n.instance_id = $1",
);
