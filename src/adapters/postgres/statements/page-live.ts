import { CHAINS, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** A page over everything live. $1 order, $2 after, $3 limit, $4 chain or null. */
export const pageLive = statement<{ readonly tx_id: string }>(
  "page-live",
  `WITH ${CHAINS}
   ${walk({ number: "t.chain_id", is: "scope.chain_id", where: "t.live" })}`,
);
