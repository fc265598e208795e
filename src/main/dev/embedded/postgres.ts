import type { Clock } from "../../../ports/clock.ts";
import { lockDirectory } from "./directory-lock.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { assertPortFree, freePort, LOOPBACK } from "./loopback-port.ts";
import { locateNative } from "./needed-packages.ts";
import { prepareBinaries } from "./postgres/binaries.ts";
import { openCluster, SUPERUSER } from "./postgres/cluster.ts";
import { choosePlace, makeDirectory } from "./postgres/place.ts";
import { clearLeftover } from "./postgres/postmaster-file.ts";
import { PredecessorAlive, type RunningServer, type Settings, type StopMode, startServer } from "./postgres/server.ts";

export interface EmbeddedPostgresOptions {
  /** Directory of all files of the server, created if missing. */
  readonly directory: string;
  readonly clock: Clock;
  /** Prints one line for people. */
  readonly log: (line: string) => void;
  /** Port of the server. If not set, a free port. */
  readonly port?: number | undefined;
  /** Server parameters that override our defaults, such as `{ fsync: "off" }` for tests. */
  readonly settings?: Settings | undefined;
  /** Aborts creating or starting the server; no process is left running. */
  readonly signal?: AbortSignal | undefined;
  /** Called if the server ends without being stopped by this process. */
  readonly onUnexpectedExit?: ((line: string) => void) | undefined;
  /** False: the server does not keep this process alive; when this process ends, the server ends too. */
  readonly keepsProcess?: boolean | undefined;
  /** A directory with `bin/postgres` and `bin/initdb` to use instead of the npm package's. */
  readonly native?: string | undefined;
}

export type EmbeddedPostgres = ReturnType<typeof supervise>;

/** Everything that is prepared once and used by each start or restart of the server. */
type Prepared = Awaited<ReturnType<typeof prepare>>;
type Started = Awaited<ReturnType<typeof startSomewhere>>;

const PORT_TRIES = 5;
const PREDECESSOR_POLL_MS = 100;
const PREDECESSOR_TIMEOUT_MS = 15_000;

/** Starts a real PostgreSQL below `directory`, as a child process that ends with this one. */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const directory = await makeDirectory(options.directory);
  const lock = await lockDirectory(directory);
  try {
    const prepared = await prepare(directory, options);
    return supervise(prepared, await startSomewhere(prepared), lock.release);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function prepare(directory: string, options: EmbeddedPostgresOptions) {
  const place = await choosePlace(directory, options.log);
  const binaries = await prepareBinaries(options.native ?? locateNative(), place);
  options.signal?.throwIfAborted();
  const cluster = await openCluster({ place, binaries, log: options.log, signal: options.signal });
  await clearLeftover(cluster.data, options.clock, options.log);
  return { place, binaries, cluster, options };
}

/**
 * Starts the server on the requested port, which must be free. A port that was chosen here may be taken by another
 * process meanwhile, so the start is retried.
 */
async function startSomewhere(prepared: Prepared) {
  const { port: asked } = prepared.options;
  if (asked !== undefined) await assertPortFree(asked);
  for (let tries = asked === undefined ? 1 : PORT_TRIES; ; tries++) {
    const port = asked ?? (await freePort());
    try {
      return { server: await startOn(prepared, port), port };
    } catch (error) {
      const lost = error instanceof EmbeddedError && error.code === "PORT_TAKEN";
      if (!lost || tries === PORT_TRIES) throw error;
    }
  }
}

async function startOn({ place, binaries, cluster, options }: Prepared, port: number) {
  const { clock, signal, settings = {}, keepsProcess } = options;
  const { account } = place;
  const { postgres } = binaries;
  const deadlineMs = clock.monotonicMs() + PREDECESSOR_TIMEOUT_MS;
  for (;;) {
    try {
      return await startServer({ postgres, cluster, account, port, settings, clock, signal, keepsProcess });
    } catch (error) {
      if (!(error instanceof PredecessorAlive)) throw error;
      if (clock.monotonicMs() >= deadlineMs) {
        throw new EmbeddedError("ALREADY_RUNNING", `a killed PostgreSQL server still has backends in ${cluster.data}`);
      }
      await clock.sleep(PREDECESSOR_POLL_MS, signal);
    }
  }
}

function supervise(prepared: Prepared, { server, port }: Started, unlock: () => Promise<void>) {
  const { binaries, cluster, options, place } = prepared;
  // Drop the abort signal: it applies to the first start only, and aborting it later must not affect a restart.
  const again: Prepared = { ...prepared, options: { ...options, signal: undefined } };
  let current = server;
  let wanted = true;
  let stopping: Promise<void> | null = null;
  let restarting: Promise<void> = Promise.resolve();

  const watch = (watched: RunningServer) =>
    void watched.exited.then((how) => {
      if (wanted && watched === current) {
        options.onUnexpectedExit?.(`PostgreSQL (pid ${watched.pid}) ended: ${how}; its log is ${cluster.logFile}`);
      }
    });
  const restart = async (mode: StopMode) => {
    if (stopping !== null) throw new EmbeddedError("START_FAILED", "this PostgreSQL has been stopped");
    wanted = false;
    await current.stop(mode);
    await clearLeftover(cluster.data, options.clock, options.log);
    current = await startOn(again, port);
    wanted = true;
    watch(current);
  };
  const stop = async () => {
    await restarting.catch(() => undefined);
    wanted = false;
    await current.stop("fast");
    await unlock();
  };

  watch(current);
  return {
    /** URL of the superuser, with its password, on the database `postgres`. */
    url: `postgres://${SUPERUSER}:${cluster.password}@${LOOPBACK}:${port}/postgres`,
    port,
    /** Version of the PostgreSQL server, such as "18.4". */
    version: binaries.version,
    /** Directory of the data. Under root it is not always below `directory`. */
    home: place.home,
    /** Pid of the postmaster; changes with a restart. */
    get pid() {
      return current.pid;
    },
    /** Ends the server and unlocks the directory. Safe to call twice, and after the server died. */
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
    /** Restarts the server on the same port. "immediate" acts like a crash: no checkpoint, recovery at start. */
    restart: (mode: StopMode = "fast") => {
      restarting = restarting.catch(() => undefined).then(() => restart(mode));
      return restarting;
    },
  };
}
