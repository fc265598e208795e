import { statement } from "./statement.ts";

/** To everybody who listens, from a transaction of its own: see wake-ups.ts. */
export const notify = statement<unknown>("notify", "SELECT pg_notify('fencepost', $1)");
