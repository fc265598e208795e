import { statement } from "./statement.ts";

/** What the schema has beyond the newest migration that the program knows ($1), and which older programs that works with. */
export const readNewerMigrations = statement<MigrationRow>(
  "read-newer-migrations",
  "SELECT m.name, m.works_with FROM fencepost.migration AS m WHERE m.name > $1 ORDER BY m.name",
);

export interface MigrationRow {
  readonly name: string;
  readonly works_with: string | null;
}
