/** A cluster with a separate PostgreSQL server, which the test may stop and crash. */
import { migrate } from "../../../src/adapters/postgres/schema/migrate.ts";
import { connect, type Database } from "../integration.ts";
import { type OwnPostgres, startOwnPostgres } from "../own-postgres.ts";
import { it as onSharedPostgres } from "./cluster.ts";

export const it = onSharedPostgres.extend<{ readonly postgres: OwnPostgres; readonly database: Database }>({
  postgres: async ({ task: _ }, use) => {
    const postgres = await startOwnPostgres();
    await migrate({ databaseUrl: postgres.url });
    await use(postgres);
    await postgres.remove();
  },
  database: async ({ postgres }, use) => {
    const database = connect(postgres.url);
    await use(database);
    await database.end();
  },
});
