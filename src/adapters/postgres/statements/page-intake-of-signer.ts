import { CHAINS_OF_INTAKE, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** The same of one signer. $1 order, $2 after, $3 limit, $4 chain or null, $5 signer. */
export const pageIntakeOfSigner = statement<{ readonly tx_id: string }>(
  "page-intake-of-signer",
  `WITH ${CHAINS_OF_INTAKE}
   ${walk({
     number: "CASE WHEN t.alias_of IS NULL THEN hashtextextended(t.signer, t.chain_id) END",
     is: "hashtextextended($5::text, scope.chain_id)",
     where: "t.signer = $5 AND t.chain_id = scope.chain_id AND t.alias_of IS NULL",
     table: "intake",
   })}`,
);
