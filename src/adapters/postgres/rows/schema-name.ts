/** Name of the schema of all tables; not the default if two deployments share a database. */
import type pg from "pg";

export const DEFAULT_SCHEMA = "fencepost";

/**
 * Replaces the schema's name in SQL. Statements and migrations are written for the schema `fencepost`. For another name
 * every mention is replaced, including names of locks, of the notification channel and of the settings that triggers
 * read, so that two schemas share none of them.
 */
export function inSchema(sql: string, schema: string): string {
  return schema === DEFAULT_SCHEMA ? sql : sql.replace(/\bfencepost\b/g, schema);
}

/**
 * Makes a client replace the schema's name in every query given as a string. A query given as `{ text }` is left
 * unchanged.
 */
export function speakingIn(client: pg.Client, schema: string): pg.Client {
  const query = client.query.bind(client) as (...asked: readonly unknown[]) => unknown;
  const ask = (text: unknown, ...rest: readonly unknown[]) =>
    query(typeof text === "string" ? inSchema(text, schema) : text, ...rest);
  client.query = ask as typeof client.query;
  return client;
}
