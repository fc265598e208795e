import { statement } from "./statement.ts";

/**
 * Before the statements of pages and of signers: rows come in the order of an index, and are not all fetched to be sorted. A plan for a
 * limit that it does not know would take a tenth of everything for a page.
 */
export const preferOrder = statement<unknown>(
  "prefer-order",
  "SELECT set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)",
);
