import { CHAINS_OF_INTAKE, WAITING_CHAIN, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** A page over waiting intake rows. $1 order, $2 after, $3 limit, $4 chain or null. */
export const pageIntake = statement<{ readonly tx_id: string }>(
  "page-intake",
  `WITH ${CHAINS_OF_INTAKE}
   ${walk({ number: WAITING_CHAIN, is: "scope.chain_id", where: "t.alias_of IS NULL", table: "intake" })}`,
);
