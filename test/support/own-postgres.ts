import { chown, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";
import { seedCluster } from "./seed-cluster.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

/** A server of the test's own, to be stopped and crashed. Its port stays the same. */
export interface OwnPostgres {
  readonly url: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** `pg_ctl restart -m immediate`: a crash, with recovery at start. */
  crash(): Promise<void>;
  /** Started again as a hot standby: it can be read, and waits for what a primary writes. */
  standBy(): Promise<void>;
  remove(): Promise<void>;
}

/** From the programs in `native` if given: of the same version as npm's, whose data it starts from. */
export async function startOwnPostgres(native?: string): Promise<OwnPostgres> {
  const directory = await makeTemporaryDirectory();
  // With fsync, unlike the run's server: what a crash may not lose is the question here.
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

/** The server that starts on this data is a standby. */
export async function signalStandby(data: string): Promise<void> {
  const { uid, gid } = await stat(data);
  const signal = join(data, "standby.signal");
  await writeFile(signal, "");
  await chown(signal, uid, gid);
}
