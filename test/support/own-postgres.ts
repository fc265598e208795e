import { chown, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";
import { seedCluster } from "./seed-cluster.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

/** A PostgreSQL server for one test, which may stop and crash it. Its port stays the same. */
export interface OwnPostgres {
  readonly url: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Crashes the server with `pg_ctl restart -m immediate`, so that it recovers at start. */
  crash(): Promise<void>;
  /** Restarts the server as a hot standby, which can be read and waits for a primary's WAL. */
  standBy(): Promise<void>;
  remove(): Promise<void>;
}

/**
 * Starts the server with the programs in `native`, if given. They must have the same version as the npm package,
 * because the server's data directory was created by that package.
 */
export async function startOwnPostgres(native?: string): Promise<OwnPostgres> {
  const directory = await makeTemporaryDirectory();
  // With fsync, unlike the run's shared server, because these tests are about what a crash may not lose.
  const start = (port?: number) =>
    startEmbeddedPostgres({ directory: directory.path, clock: systemClock, log: () => undefined, port, native });
  await seedCluster(directory.path);
  let server: EmbeddedPostgres = await start();
  const { url, port, home } = server;
  return {
    url,
    stop: () => server.stop(),
    start: async () => {
      server = await start(port);
    },
    crash: () => server.restart("immediate"),
    standBy: async () => {
      await server.stop();
      await signalStandby(join(home, "postgres", "data"));
      server = await start(port);
    },
    remove: async () => {
      await server.stop();
      await directory.remove();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** Makes the server that starts on this data directory a standby. */
export async function signalStandby(data: string): Promise<void> {
  const { uid, gid } = await stat(data);
  const signal = join(data, "standby.signal");
  await writeFile(signal, "");
  await chown(signal, uid, gid);
}
