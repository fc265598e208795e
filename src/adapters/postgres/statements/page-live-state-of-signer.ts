import { chainsOf, FEW_OF_THEM, liveIn, MANY, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** The same of one signer. $1 order, $2 after, $3 limit, $4 chain or null, $5 state, $6 signer. */
export const pageLiveStateOfSigner = statement<{ readonly tx_id: string }>(
  "page-live-state-of-signer",
  `WITH ${chainsOf("$6")}, ${liveIn("c.signer = $6")}
   ${walk({
     number: "hashtextextended(t.signer, t.chain_id)",
     is: "hashtextextended($6::text, scope.chain_id)",
     where: "t.signer = $6 AND t.chain_id = scope.chain_id AND t.live AND t.state = $5",
     from: MANY,
   })}
   UNION ALL
${FEW_OF_THEM}`,
);
