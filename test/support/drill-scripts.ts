/** Runs the scripts of deploy/drills as an operator does, with the tools of Debian's PostgreSQL 15 and this checkout's command line. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../architecture/tree.ts";
import { POSTGRES_15 } from "./postgres-15.ts";

export const NO_POSTGRES_15 = "no PostgreSQL 15 of Debian is installed: backups with its tools stay untested";

export const tool = (name: string) => join(POSTGRES_15, "bin", name);

if (!existsSync(tool("pg_dump"))) process.stderr.write(`${NO_POSTGRES_15}\n`);

interface Ran {
  readonly code: number;
  readonly output: string;
}

/** Runs a drill; its report is written to `directory`. */
export async function runDrill(
  script: "backup.sh" | "restore.sh",
  file: string,
  { databaseUrl, directory }: { readonly databaseUrl: string; readonly directory: string },
): Promise<Ran> {
  const env = {
    PATH: `${join(POSTGRES_15, "bin")}:${process.env.PATH}`,
    FENCEPOST_DATABASE_URL: databaseUrl,
    FENCEPOST: `${process.execPath} ${join(ROOT, "bin/fencepost.js")}`,
  };
  const running = promisify(execFile)(join(ROOT, "deploy/drills", script), [file], { cwd: directory, env });
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, output: stdout + stderr }),
  );
}

/** Runs this checkout's `fencepost` against a node or a database. */
export async function fencepost(argv: readonly string[], variables: Readonly<Record<string, string>>): Promise<string> {
  const env = { PATH: process.env.PATH, ...variables };
  const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, "bin/fencepost.js"), ...argv], { env });
  return stdout;
}
