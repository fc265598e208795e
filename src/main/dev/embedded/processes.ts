import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import { type Clock, within } from "../../../ports/clock.ts";
import { systemCode } from "./embedded-error.ts";

/** Who a child runs as; null where it simply runs as we do. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A process that runs right now. A pid alone proves nothing: numbers are reused, in containers almost at once. */
export interface LiveProcess {
  /** Differs between two processes that had the same pid one after the other. */
  readonly identity: string;
  /** Null where the system does not tell. */
  readonly workingDirectory: string | null;
  readonly command: string;
}

export interface Outcome {
  /** Null where a signal ended it, or where it never ran. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Children get an environment of their own. PGDATA, PGPORT and friends in the user's shell would change what the server
 * does, and a macOS postmaster without a locale refuses to start.
 */
export const CHILD_ENVIRONMENT: Readonly<Record<string, string>> = {
  LC_ALL: "C",
  TZ: "UTC",
  PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
};

const EXIT_POLL_MS = 20;

/** Zombies count as gone: in a container without a reaping init they would otherwise stay alive for ever. */
export function findProcess(pid: number): Promise<LiveProcess | null> {
  return process.platform === "linux" ? findInProc(pid) : findWithPs(pid);
}

async function findInProc(pid: number): Promise<LiveProcess | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (stat === null) return null;
  // The command name stands in parentheses and may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, startTicks] = [fields[0], fields[19]];
  if (state === "Z" || state === "X" || startTicks === undefined) return null;
  const [boot, command, workingDirectory] = await Promise.all([
    readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => ""),
    readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""),
    readlink(`/proc/${pid}/cwd`).catch(() => null),
  ]);
  return {
    identity: `${boot.trim()}:${startTicks}`,
    workingDirectory,
    command: command.replaceAll("\0", " ").trim(),
  };
}

async function findWithPs(pid: number): Promise<LiveProcess | null> {
  const listing = await run("ps", ["-ww", "-o", "stat=,lstart=,command=", "-p", String(pid)]);
  return parsePsLine(listing.stdout);
}

/** `Ss   Sun Nov 15 04:23:48 2026     /path/to/postgres -D …` */
export function parsePsLine(line: string): LiveProcess | null {
  const match = /^\s*(\S+)\s+(\S+ +\S+ +\d+ +[\d:]+ +\d+)\s+(.*?)\s*$/.exec(line);
  const [, state, started, command] = match ?? [];
  if (state === undefined || started === undefined || command === undefined || state.startsWith("Z")) return null;
  return { identity: started.replace(/ +/g, " "), workingDirectory: null, command };
}

/** Runs a short command to its end. Never rejects: a command that cannot be started is a failed one. */
export function run(file: string, args: readonly string[], account: Account | null = null): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(file, args, { ...account, cwd: "/", env: CHILD_ENVIRONMENT }, (error, stdout, stderr) => {
      const neverRan = child.pid === undefined && error !== null;
      resolve({ code: neverRan ? null : child.exitCode, stdout, stderr: neverRan ? error.message : stderr });
    });
  });
}

/** Waits for a process that is not our child to go away; false when it is still there after `timeoutMs`. */
export async function waitForExit(clock: Clock, pid: number, timeoutMs: number): Promise<boolean> {
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  const before = await findProcess(pid);
  while (before !== null && (await findProcess(pid))?.identity === before.identity) {
    if (clock.monotonicMs() >= deadlineMs) return false;
    await clock.sleep(EXIT_POLL_MS);
  }
  return true;
}

/** True when `promise` settles within `ms`. */
export function settlesWithin(clock: Clock, promise: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = () => true;
  return within(clock, promise.then(settled, settled), { ms, late: () => false });
}

/** Sends a signal; a process that is already gone is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (systemCode(error) !== "ESRCH") throw error;
  }
}
