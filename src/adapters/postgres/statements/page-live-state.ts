import { CHAINS, FEW_OF_THEM, IN_FLIGHT_MET, liveIn, MANY, walk } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/** A page over what is live in one state. $1 order, $2 after, $3 limit, $4 chain or null, $5 state. */
export const pageLiveState = statement<{ readonly tx_id: string }>(
  "page-live-state",
  `WITH ${CHAINS}, ${liveIn("true", IN_FLIGHT_MET)}
   ${walk({
     number: "t.chain_id",
     is: "scope.chain_id",
     where: "t.live AND t.state = $5",
     from: MANY,
   })}
   UNION ALL
${FEW_OF_THEM}`,
);
