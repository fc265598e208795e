import { readdir } from "node:fs/promises";
import type { Statement } from "../../../src/adapters/postgres/statements/statement.ts";

const FOLDER = new URL("../../../src/adapters/postgres/statements/", import.meta.url);

export interface NamedStatement {
  /** Name of the exported constant that holds the SQL statement. */
  readonly constant: string;
  readonly statement: Statement<unknown>;
}

export async function everyStatement(): Promise<readonly NamedStatement[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith(".ts") && file !== "statement.ts");
  const modules = await Promise.all(
    files.map(async (file) => {
      const exports: Record<string, unknown> = await import(new URL(file, FOLDER).href);
      return Object.entries(exports).map(([constant, statement]) => ({
        constant,
        statement: statement as Statement<unknown>,
      }));
    }),
  );
  return modules.flat();
}
