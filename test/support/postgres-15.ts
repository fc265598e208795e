import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

/** The path of PostgreSQL 15 on Debian and Ubuntu. */
export const POSTGRES_15 = "/usr/lib/postgresql/15";

/**
 * Starts PostgreSQL 15, the oldest supported version, to test differences between versions; null if it is not
 * installed.
 */
export async function startPostgres15(): Promise<EmbeddedPostgres | null> {
  if (!existsSync(join(POSTGRES_15, "bin", "initdb"))) return null;
  const directory = await makeTemporaryDirectory();
  const server = await startEmbeddedPostgres({
    directory: directory.path,
    native: POSTGRES_15,
    clock: systemClock,
    log: () => undefined,
    settings: { fsync: "off" },
  });
  return {
    ...server,
    get pid() {
      return server.pid;
    },
    stop: async () => {
      await server.stop();
      await directory.remove();
      await rm(server.home, { recursive: true, force: true });
    },
  };
}
