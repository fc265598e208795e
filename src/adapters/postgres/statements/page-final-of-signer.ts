import { chainsOf, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** The same of one signer. $1 order, $2 after, $3 limit, $4 chain or null, $5 outcome, $6 signer. */
export const pageFinalOfSigner = statement<{ readonly tx_id: string }>(
  "page-final-of-signer",
  `WITH ${chainsOf("$6")}
   ${walk({
     number: "hashtextextended(t.outcome || t.signer, t.chain_id)",
     is: "hashtextextended($5::text || $6::text, scope.chain_id)",
     where: "t.outcome = $5 AND t.signer = $6 AND t.chain_id = scope.chain_id AND t.outcome IS NOT NULL",
   })}`,
);
