import { statement } from "./statement.ts";

/** The process that serves this connection. A pooler introduces itself under a number of its own making. */
export const readBackend = statement<{ readonly pid: number }>("read-backend", "SELECT pg_backend_pid() AS pid");
