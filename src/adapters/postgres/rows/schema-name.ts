/** The schema of all tables: another name than the usual one if two deployments share a database. */
import type pg from "pg";

export const DEFAULT_SCHEMA = "fencepost";

/**
 * Statements and migrations are written for the schema `fencepost`. Under another name every mention is replaced, also in
 * names of locks, of the channel of hints and of the settings that our triggers read: two schemas share none of them.
 */
export function inSchema(sql: string, schema: string): string {
  return schema === DEFAULT_SCHEMA ? sql : sql.replace(/\bfencepost\b/g, schema);
}

/** A client that says every string in this schema; what is given as `{ text }` names its schema itself. */
export function speakingIn(client: pg.Client, schema: string): pg.Client {
  const query = client.query.bind(client) as (...asked: readonly unknown[]) => unknown;
  const ask = (text: unknown, ...rest: readonly unknown[]) =>
    query(typeof text === "string" ? inSchema(text, schema) : text, ...rest);
  client.query = ask as typeof client.query;
  return client;
}
