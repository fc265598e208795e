import { execFile, type SpawnOptions, spawn } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import { Socket } from "node:net";
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
export async function findProcess(pid: number): Promise<LiveProcess | null> {
  if (process.platform === "linux") return findInProc(pid);
  return parsePsLine((await run("ps", ["-ww", "-o", "stat=,lstart=,command=", "-p", String(pid)])).stdout);
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
  return { identity: `${boot.trim()}:${startTicks}`, workingDirectory, command: command.replaceAll("\0", " ").trim() };
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

/** A child that does not outlive us. */
export type Child = ReturnType<typeof launch>;

export interface Ending {
  /** In a few words: the exit code, the signal, or why it never ran. */
  readonly how: string;
  readonly code: number | null;
  /** Where it could not be started at all. */
  readonly error?: Error;
  /** The end of what it said, where that is a pipe. */
  readonly stderr: string;
}

const LAST_WORDS_CHARACTERS = 10_000;

/**
 * Starts it in a process group of its own: Ctrl-C reaches us alone, and we end the child when the node has drained. Where
 * we are killed, `lastSignal` ends it.
 */
export function launch(command: readonly string[], options: SpawnOptions, lastSignal: "INT" | "TERM") {
  const [file = "", ...args] = command;
  const handle = spawn(file, args, { ...options, detached: true });
  const dismiss = handle.pid === undefined ? () => undefined : guardChild(handle.pid, lastSignal);
  let stderr = "";
  handle.stderr?.on("data", (chunk) => {
    stderr = (stderr + chunk).slice(-LAST_WORDS_CHARACTERS);
  });
  const ended = new Promise<Ending>((resolve) => {
    handle.on("error", (error) => resolve({ how: error.message, code: null, error, stderr }));
    handle.on("close", (code, signal) => {
      dismiss();
      resolve({ how: signal === null ? `exit code ${code}` : `signal ${signal}`, code, stderr });
    });
  });
  return { handle, ended };
}

/** One signal after the other, each with its time to have an effect, and SIGKILL at the end. */
export async function endChild(
  { handle, ended }: Child,
  clock: Clock,
  signals: readonly (readonly [NodeJS.Signals, withinMs: number])[],
): Promise<void> {
  for (const [signal, withinMs] of signals) {
    handle.kill(signal);
    if (await settlesWithin(clock, ended, withinMs)) return;
  }
  handle.kill("SIGKILL");
  await ended;
}

/**
 * Makes a child end when we end, even by SIGKILL, where no handler of ours can run. A shell waits on a pipe whose other
 * end only this process holds; the kernel closes it with us, the read returns, and the shell sends the signal. It stands
 * in a process group of its own, so that Ctrl-C in the terminal does not take it away first.
 *
 * The returned function dismisses the guard. Call it when the child has ended: its pid may then be another process's.
 */
function guardChild(pid: number, signal: "INT" | "TERM"): () => void {
  const guard = spawn("/bin/sh", ["-c", 'read -r _; kill -s "$2" "$1" 2>/dev/null', "guard", String(pid), signal], {
    detached: true,
    cwd: "/",
    env: CHILD_ENVIRONMENT,
    stdio: ["pipe", "ignore", "ignore"],
  });
  // Without a shell there is no guard; the next start still finds and stops what was left behind.
  guard.on("error", () => undefined);
  guard.stdin.on("error", () => undefined);
  guard.unref();
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return () => void guard.kill("SIGKILL");
}
