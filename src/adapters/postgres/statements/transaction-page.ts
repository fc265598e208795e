import * as scopes from "../rows/page-scopes.ts";
import { statement } from "./statement.ts";

const page = statement<{ readonly txId: string }>;

/**
 * Planner settings for statements that read pages or signers: rows must be read in index order, not fetched completely
 * and sorted. Because the page size is a parameter, the planner would otherwise assume that a tenth of all rows is
 * read.
 */
export const preferOrder = statement("prefer-order")`
  SELECT set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)`;

/**
 * Page of all transactions by id, which is the order of creation. $1: the order, $2: the end of the previous page, $3:
 * the page size. Of the two halves, one per order, only the requested one is executed.
 */
export const pageTransactions = page("page-transactions")`
  ${scopes.byId("fencepost.transaction")}`;

/**
 * Page of all live transactions. $1: the order, $2: the end of the previous page, $3: the page size, $4: the chains or
 * null.
 */
export const pageLive = page("page-live")`
  WITH ${scopes.CHAINS}
  ${scopes.walk({ number: "t.chain_id", is: "scope.chain_id", where: "t.live" })}`;

/**
 * Page of the live transactions of some signers. $1: the order, $2: the end of the previous page, $3: the page size, $4:
 * the chains or null, $5: the signers.
 */
export const pageLiveOfSigners = page("page-live-of-signers")`
  WITH ${scopes.lanesOf("$5")}
  ${scopes.walk({
    number: "hashtextextended(t.signer, t.chain_id)",
    is: "hashtextextended(scope.signer, scope.chain_id)",
    where: "t.signer = scope.signer AND t.chain_id = scope.chain_id AND t.live",
  })}`;

/**
 * Page of the live transactions in one state. $1: the order, $2: the end of the previous page, $3: the page size, $4:
 * the chains or null, $5: the state.
 */
export const pageLiveState = page("page-live-state")`
  WITH ${scopes.CHAINS}, ${scopes.liveIn("c.chain_id = scope.chain_id", scopes.IN_FLIGHT_MET)}
  ${scopes.walk({
    number: "t.chain_id",
    is: "scope.chain_id",
    where: "t.live AND t.state = $5",
    from: scopes.MANY,
  })}
  UNION ALL
${scopes.byId("few")}`;

/**
 * Page of the live transactions of some signers in one state. $1: the order, $2: the end of the previous page, $3: the
 * page size, $4: the chains or null, $5: the state, $6: the signers.
 */
export const pageLiveStateOfSigners = page("page-live-state-of-signers")`
  WITH ${scopes.lanesOf("$6")}, ${scopes.liveIn("c.chain_id = scope.chain_id AND c.signer = scope.signer")}
  ${scopes.walk({
    number: "hashtextextended(t.signer, t.chain_id)",
    is: "hashtextextended(scope.signer, scope.chain_id)",
    where: "t.signer = scope.signer AND t.chain_id = scope.chain_id AND t.live AND t.state = $5",
    from: scopes.MANY_OF_LANES,
  })}
  UNION ALL
${scopes.byId("few")}`;

/**
 * Page of the final transactions with one outcome. $1: the order, $2: the end of the previous page, $3: the page size,
 * $4: the chains or null, $5: the outcome.
 */
export const pageFinal = page("page-final")`
  WITH ${scopes.CHAINS}
  ${scopes.walk({
    number: "hashtextextended(t.outcome, t.chain_id)",
    is: "hashtextextended($5::text, scope.chain_id)",
    where: "t.outcome = $5 AND t.chain_id = scope.chain_id AND t.outcome IS NOT NULL",
  })}`;

/**
 * Page of the final transactions of some signers with one outcome. $1: the order, $2: the end of the previous page, $3:
 * the page size, $4: the chains or null, $5: the outcome, $6: the signers.
 */
export const pageFinalOfSigners = page("page-final-of-signers")`
  WITH ${scopes.lanesOf("$6")}
  ${scopes.walk({
    number: "hashtextextended(t.outcome || t.signer, t.chain_id)",
    is: "hashtextextended($5::text || scope.signer, scope.chain_id)",
    where: "t.outcome = $5 AND t.signer = scope.signer AND t.chain_id = scope.chain_id AND t.outcome IS NOT NULL",
  })}`;

/**
 * Page of waiting intake rows. $1: the order, $2: the end of the previous page, $3: the page size, $4: the chains or
 * null.
 */
export const pageIntake = page("page-intake")`
  WITH ${scopes.CHAINS_OF_INTAKE}
  ${scopes.walk({ number: scopes.WAITING_CHAIN, is: "scope.chain_id", where: "t.alias_of IS NULL", table: "intake" })}`;

/**
 * Page of the waiting intake rows of some signers. $1: the order, $2: the end of the previous page, $3: the page size,
 * $4: the chains or null, $5: the signers.
 */
export const pageIntakeOfSigners = page("page-intake-of-signers")`
  WITH ${scopes.CHAINS_OF_INTAKE}
  ${scopes.walk({
    number: "CASE WHEN t.alias_of IS NULL THEN hashtextextended(t.signer, t.chain_id) END",
    is: "hashtextextended(own.signer, scope.chain_id)",
    where: "t.signer = own.signer AND t.chain_id = scope.chain_id AND t.alias_of IS NULL",
    table: "intake",
    from: "scope CROSS JOIN unnest($5::text[]) AS own (signer)",
  })}`;

/** Reads when transactions and waiting intents were created. */
export const readCreationTimes = statement<{ readonly txId: string; readonly createdAt: Date }>("read-creation-times")`
  SELECT t.tx_id, t.created_at FROM fencepost.transaction AS t WHERE t.tx_id = ANY ($1::uuid[])
  UNION ALL
  SELECT i.tx_id, i.created_at FROM fencepost.intake AS i WHERE i.tx_id = ANY ($1::uuid[])`;
