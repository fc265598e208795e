import { chainsOf, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** The same of one signer. $1 order, $2 after, $3 limit, $4 chain or null, $5 outcome, $6 signer. */
export const pageFinalOfSigner = statement<{ readonly tx_id: string }>(
  "page-final-of-signer",
  `WITH ${chainsOf("$6")}
   ${walk({
     key: ["signer", "chain_id", "outcome"],
     is: ["$6", "scope.chain_id", "$5"],
     where: "t.outcome IS NOT NULL",
   })}`,
);
