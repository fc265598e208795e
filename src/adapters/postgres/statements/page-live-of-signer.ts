import { chainsOf, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** The same of one signer. $1 order, $2 after, $3 limit, $4 chain or null, $5 signer. */
export const pageLiveOfSigner = statement<{ readonly tx_id: string }>(
  "page-live-of-signer",
  `WITH ${chainsOf("$5")}
   ${walk({
     number: "hashtextextended(t.signer, t.chain_id)",
     is: "hashtextextended($5::text, scope.chain_id)",
     where: "t.signer = $5 AND t.chain_id = scope.chain_id AND t.live",
   })}`,
);
