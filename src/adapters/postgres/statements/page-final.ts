import { CHAINS, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** A page over what is over, by outcome. $1 order, $2 after, $3 limit, $4 chain or null, $5 outcome. */
export const pageFinal = statement<{ readonly tx_id: string }>(
  "page-final",
  `WITH ${CHAINS}
   ${walk({
     number: "hashtextextended(t.outcome, t.chain_id)",
     is: "hashtextextended($5::text, scope.chain_id)",
     where: "t.outcome = $5 AND t.chain_id = scope.chain_id AND t.outcome IS NOT NULL",
   })}`,
);
