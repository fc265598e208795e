import { open, readFile, stat } from "node:fs/promises";
import type { Clock } from "../../../../ports/clock.ts";
import { EmbeddedError } from "../embedded-error.ts";
import { LOOPBACK, portTaken } from "../loopback-port.ts";
import { type Account, CHILD_ENVIRONMENT, endChild, launch, settlesWithin } from "../processes.ts";
import type { Cluster } from "./cluster.ts";
import { readPostmasterFile, STOP_SIGNALS } from "./postmaster-file.ts";

export type Settings = Readonly<Record<string, string>>;
export type StopMode = keyof typeof STOP_SIGNALS;

export type RunningServer = Awaited<ReturnType<typeof startServer>>;

export interface ServerRequest {
  readonly postgres: string;
  readonly cluster: Cluster;
  readonly account: Account | null;
  readonly port: number;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  readonly keepsProcess?: boolean | undefined;
}

/**
 * The server refused to start because backends of an earlier, killed server still use its shared memory. Those backends
 * end by themselves.
 */
export class PredecessorAlive extends Error {}

const READY_POLL_MS = 20;
const READY_TIMEOUT_MS = 120_000;
const LOG_KEPT_BYTES = 10_000_000;

export async function startServer(request: ServerRequest) {
  const logFrom = await startOfLog(request.cluster.logFile);
  const child = await launchServer(request);
  /** Resolves with a text about how the server ended, even if this process did not end it. */
  const exited = child.ended.then(({ how }) => how);
  const stop = (mode: StopMode) => endChild(child, request.clock, STOP_SIGNALS[mode]);
  const server = { pid: child.handle.pid ?? 0, exited, stop };
  const ready = await isReady(server, request);
  if (request.keepsProcess === false) child.handle.unref();
  if (ready) return server;
  await server.stop("fast");
  request.signal?.throwIfAborted();
  const log = (await readFile(request.cluster.logFile)).subarray(logFrom).toString();
  throw explain(log || (await exited), request);
}

/** Starts the server. Its log goes to a file: an unread pipe would block the server, and the file survives a crash. */
async function launchServer({ postgres, cluster, account, port, settings }: ServerRequest) {
  const log = await open(cluster.logFile, "a");
  try {
    // Pass parameters on the command line, so that postgresql.conf is not edited and the next start may use other
    // parameters.
    const parameters = Object.entries({ ...DEFAULTS, ...settings, port: String(port) });
    const command = [
      postgres,
      "-D",
      cluster.data,
      ...parameters.flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ];
    const options = { ...account, cwd: "/", env: CHILD_ENVIRONMENT };
    return launch(command, { ...options, stdio: ["ignore", log.fd, log.fd] }, "INT");
  } finally {
    await log.close();
  }
}

async function isReady({ pid, exited }: RunningServer, { clock, signal, cluster }: ServerRequest) {
  const deadlineMs = clock.monotonicMs() + READY_TIMEOUT_MS;
  while (clock.monotonicMs() < deadlineMs && !signal?.aborted) {
    const file = await readPostmasterFile(cluster.data);
    if (file?.pid === pid && file.ready) return true;
    if (await settlesWithin(clock, exited, READY_POLL_MS)) return false;
  }
  return false;
}

function explain(log: string, { port, cluster }: ServerRequest): Error {
  if (/could not bind .*address already in use/i.test(log)) return portTaken(port);
  if (/pre-existing shared memory block/.test(log)) return new PredecessorAlive();
  const line = /^.*?(?:FATAL|PANIC|ERROR): +(.*)$/m.exec(log)?.[1] ?? log.trim().split("\n").at(-1);
  return new EmbeddedError("START_FAILED", `PostgreSQL did not start: ${line} (${cluster.logFile})`);
}

/**
 * Position in the log file at which this run's log starts. New output is appended to the log of earlier runs, unless
 * that is too large.
 */
async function startOfLog(path: string) {
  const size = (await stat(path).catch(() => null))?.size ?? 0;
  if (size <= LOG_KEPT_BYTES) return size;
  await (await open(path, "w")).close();
  return 0;
}

/** Parameters of a small but durable server: Fencepost's guarantees must also hold in `dev`. */
const DEFAULTS: Settings = {
  listen_addresses: LOOPBACK,
  // Use no socket file: its path is limited to 107 characters, and a checkout may be deeper.
  unix_socket_directories: "",
  max_connections: "100",
  shared_buffers: "128MB",
  fsync: "on",
  synchronous_commit: "on",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
  logging_collector: "off",
  log_destination: "stderr",
};
