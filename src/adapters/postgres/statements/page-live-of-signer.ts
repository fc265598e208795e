import { chainsOf, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** The same of one signer. $1 order, $2 after, $3 limit, $4 chain or null, $5 signer. */
export const pageLiveOfSigner = statement<{ readonly tx_id: string }>(
  "page-live-of-signer",
  `WITH ${chainsOf("$5")}
   ${walk({ key: ["signer", "chain_id"], is: ["$5", "scope.chain_id"], where: "t.live" })}`,
);
