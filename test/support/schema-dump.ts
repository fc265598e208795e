import type { Client } from "pg";

/**
 * Prints the schema of a server as readable SQL. It reads the catalog instead of using `pg_dump`, so that it needs no
 * tool and gives the same text on every supported version.
 */
export async function dumpSchema(client: Client): Promise<string> {
  const { rows: tables } = await client.query<{ name: string; options: string | null }>(
    `SELECT c.relname AS name, array_to_string(c.reloptions, ', ') AS options
     FROM pg_class c WHERE c.relnamespace = 'fencepost'::regnamespace AND c.relkind = 'r' ORDER BY c.relname`,
  );
  const parts: string[] = [];
  for (const { name, options } of tables) {
    const body = [...(await columns(client, name)), ...(await constraints(client, name))].join(",\n");
    const storage = options === null ? "" : ` WITH (${options})`;
    parts.push(`CREATE TABLE fencepost.${name} (\n${body}\n)${storage};`);
    parts.push(...(await indexes(client, name)), ...(await triggers(client, name)));
  }
  parts.push(...(await views(client)), ...(await functions(client)));
  return `-- Made from a migrated database. Do not edit: change a migration, then update the snapshot.\n\n${parts.join("\n\n")}\n`;
}

/**
 * The names and columns of views. Their definitions are omitted, because each version of the server prints them
 * differently.
 */
async function views(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c
     WHERE c.relnamespace = 'fencepost'::regnamespace AND c.relkind = 'v' ORDER BY c.relname`,
  );
  const parts = rows.map(async ({ name }) => `-- view fencepost.${name}\n${(await columns(client, name)).join(",\n")}`);
  return (await Promise.all(parts)).map((part) => part.replaceAll("\n", "\n--"));
}

async function columns(client: Client, table: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ line: string }>(
    `SELECT concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE "' || l.collname || '"' END,
       CASE WHEN a.attnotnull THEN 'NOT NULL' END,
       CASE WHEN a.attidentity = 'a' THEN 'GENERATED ALWAYS AS IDENTITY' END,
       'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid)) AS line
     FROM pg_attribute a
     JOIN pg_type t ON t.oid = a.atttypid
     LEFT JOIN pg_collation l ON l.oid = a.attcollation
     LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = format('fencepost.%I', $1::text)::regclass AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY a.attnum`,
    [table],
  );
  // Print default functions without the schema. PostgreSQL itself omits it only for a role that has the schema in its
  // search path, as a role with the schema's name does.
  return rows.map(({ line }) => `  ${line.replace("DEFAULT fencepost.", "DEFAULT ")}`);
}

/** Constraints except NOT NULL, which only PostgreSQL 18 and later list as constraints. */
async function constraints(client: Client, table: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ line: string }>(
    `SELECT format('CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)) AS line
     FROM pg_constraint
     WHERE conrelid = format('fencepost.%I', $1::text)::regclass AND contype IN ('c', 'p', 'u', 'f', 'x')
     ORDER BY contype DESC, conname`,
    [table],
  );
  // Always print the schema of referenced tables. PostgreSQL omits it for a role that has the schema in its search
  // path, as a role with the schema's name does.
  return rows.map(({ line }) => `  ${line.replace(/ REFERENCES (?!fencepost\.)/, " REFERENCES fencepost.")}`);
}

async function indexes(client: Client, table: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ line: string }>(
    `SELECT pg_get_indexdef(i.indexrelid) || ';' AS line
     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     WHERE i.indrelid = format('fencepost.%I', $1::text)::regclass AND NOT i.indisprimary
     ORDER BY c.relname`,
    [table],
  );
  return rows.map(({ line }) => line);
}

async function triggers(client: Client, table: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ line: string }>(
    // Server versions differ in whether they print the schema of a trigger's function, so always print it.
    `SELECT regexp_replace(pg_get_triggerdef(oid), 'FUNCTION (fencepost\\.)?', 'FUNCTION fencepost.') || ';' AS line FROM pg_trigger
     WHERE tgrelid = format('fencepost.%I', $1::text)::regclass AND NOT tgisinternal ORDER BY tgname`,
    [table],
  );
  return rows.map(({ line }) => line);
}

async function functions(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ body: string }>(
    `SELECT pg_get_functiondef(oid) AS body FROM pg_proc WHERE pronamespace = 'fencepost'::regnamespace ORDER BY proname`,
  );
  return rows.map(({ body }) => `${body.trimEnd()};`);
}
