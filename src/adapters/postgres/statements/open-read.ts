import { statement } from "./statement.ts";

/**
 * First in every reading transaction: a limit that lives in the server, and the planner as in open-transaction.ts. No
 * bitmaps, so that a page is read from its index in order and not sorted out of everything there is.
 */
export const openRead = statement<unknown>(
  "open-read",
  `SELECT
     set_config('statement_timeout', $1, true),
     set_config('idle_in_transaction_session_timeout', $1, true),
     set_config('plan_cache_mode', 'force_generic_plan', true),
     set_config('enable_seqscan', 'off', true),
     set_config('enable_bitmapscan', 'off', true),
     set_config('enable_nestloop', 'off', true),
     set_config('jit', 'off', true),
     set_config('DateStyle', 'ISO', true)`,
);
