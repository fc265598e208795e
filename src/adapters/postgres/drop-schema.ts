import pg from "pg";

/** Removes everything Fencepost keeps in this database. For `dev`, whose chain starts anew each time. */
export async function dropSchema(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query("DROP SCHEMA IF EXISTS fencepost CASCADE");
  } finally {
    await client.end();
  }
}
