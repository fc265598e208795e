import { execFile, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, readlink } from "node:fs/promises";
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { codeOf } from "../../../domain/text/thrown.ts";
import { type Clock, within } from "../../../ports/clock.ts";

/** Operating system user of a child process. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A running process. A pid alone does not identify it: numbers are reused, in containers almost at once. */
export interface LiveProcess {
  /** Value that distinguishes processes that had the same pid, one after the other. */
  readonly identity: string;
  /** Working directory of the process; null: unknown on this system. */
  readonly workingDirectory: string | null;
  readonly command: string;
}

/**
 * Environment of child processes. PGDATA, PGPORT and others from the user's shell would change the server, and a macOS
 * postmaster without a locale does not start.
 */
export const CHILD_ENVIRONMENT: Readonly<Record<string, string>> = {
  LC_ALL: "C",
  TZ: "UTC",
  PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
};

const EXIT_POLL_MS = 20;

/**
 * Finds a running process. Zombies count as ended: without an init that reaps them, as in some containers, they stay
 * for ever.
 */
export async function findProcess(pid: number): Promise<LiveProcess | null> {
  if (process.platform === "linux") return findInProc(pid);
  return parsePsLine((await run("ps", ["-ww", "-o", "stat=,lstart=,command=", "-p", String(pid)])).stdout);
}

async function findInProc(pid: number): Promise<LiveProcess | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (stat === null) return null;
  // The command name is in parentheses, and may contain spaces and parentheses.
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

/** Parses a line of `ps`, such as `Ss   Sun Nov 15 04:23:48 2026     /path/to/postgres -D …` */
export function parsePsLine(line: string): LiveProcess | null {
  const match = /^\s*(\S+)\s+(\S+ +\S+ +\d+ +[\d:]+ +\d+)\s+(.*?)\s*$/.exec(line);
  const [, state, started, command] = match ?? [];
  if (state === undefined || started === undefined || command === undefined || state.startsWith("Z")) return null;
  return { identity: started.replace(/ +/g, " "), workingDirectory: null, command };
}

interface Outcome {
  /** Exit code; null: the command was ended by a signal, or never started. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a short command. Never rejects: a command that cannot be started counts as failed. */
export function run(file: string, args: readonly string[], account: Account | null = null): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(file, args, { ...account, cwd: "/", env: CHILD_ENVIRONMENT }, (error, stdout, stderr) => {
      const neverRan = child.pid === undefined && error !== null;
      resolve({ code: neverRan ? null : child.exitCode, stdout, stderr: neverRan ? error.message : stderr });
    });
  });
}

/** Waits until a process that is not our child has ended; returns false if it still runs after `timeoutMs`. */
export async function waitForExit(clock: Clock, pid: number, timeoutMs: number): Promise<boolean> {
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  const before = await findProcess(pid);
  while (before !== null && (await findProcess(pid))?.identity === before.identity) {
    if (clock.monotonicMs() >= deadlineMs) return false;
    await clock.sleep(EXIT_POLL_MS);
  }
  return true;
}

/** Resolves to true if `promise` settles within `ms`. */
export function settlesWithin(clock: Clock, promise: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = () => true;
  return within(clock, promise.then(settled, settled), { ms, late: () => false });
}

/** Sends a signal to a process. A process that has already ended is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
}

/** A child process that ends when this process ends. */
export type Child = ReturnType<typeof launch>;

export interface Ending {
  /** How the child ended: the exit code, the signal, or why it never started. */
  readonly how: string;
  readonly code: number | null;
  /** Set if the child could not be started. */
  readonly error?: Error;
  /** The last part of the child's standard error, if that is a pipe. */
  readonly stderr: string;
}

const KEPT_STDERR_CHARACTERS = 10_000;

/**
 * Starts a child process in its own process group, so that Ctrl-C reaches only this process, which ends the child after
 * the node has finished its work. If this process is killed, a guard process sends `lastSignal` to the child.
 */
export function launch(command: readonly string[], options: SpawnOptions, lastSignal: "INT" | "TERM") {
  const [file = "", ...args] = command;
  const handle = spawn(file, args, { ...options, detached: true });
  // On a system without a shell there is no guard process that ends the child. Then the next start finds and stops a
  // leftover server.
  const guard = handle.pid && whenThisEnds('kill -s "$2" "$1" 2>/dev/null', String(handle.pid), lastSignal);
  let stderr = "";
  handle.stderr?.on("data", (chunk) => {
    stderr = (stderr + chunk).slice(-KEPT_STDERR_CHARACTERS);
  });
  const ended = new Promise<Ending>((resolve) => {
    handle.on("error", (error) => resolve({ how: error.message, code: null, error, stderr }));
    handle.on("close", (code, signal) => {
      // Stop the guard process: the pid of an ended child may be reused, and the guard would kill another process.
      if (guard) guard.kill("SIGKILL");
      resolve({ how: signal === null ? `exit code ${code}` : `signal ${signal}`, code, stderr });
    });
  });
  return { handle, ended };
}

/** Parses the first line of a child's standard output. Throws `failure` if the child ends before. */
export async function readyLine<T>({ handle, ended }: Child, failure: (ending: Ending) => Error): Promise<T> {
  const first = once(createInterface({ input: handle.stdout as Readable }), "line") as Promise<[string]>;
  const ready = await Promise.race([first, ended]);
  if ("how" in ready) throw failure(ready);
  return JSON.parse(ready[0]) as T;
}

/** Lets this process end although the child still runs. When this process ends, the child ends too. */
export function release({ handle }: Child): void {
  handle.unref();
  for (const pipe of [handle.stdout, handle.stderr]) if (pipe instanceof Socket) pipe.unref();
}

/**
 * Ends a child process: sends the signals one after the other, waits for each to take effect, and finally sends
 * SIGKILL.
 */
export async function endChild(
  { handle, ended }: Child,
  clock: Clock,
  signals: readonly (readonly [NodeJS.Signals, withinMs: number])[],
): Promise<void> {
  handle.ref();
  for (const [signal, withinMs] of signals) {
    handle.kill(signal);
    if (await settlesWithin(clock, ended, withinMs)) return;
  }
  handle.kill("SIGKILL");
  await ended;
}

/**
 * Runs a shell script when this process ends, even by SIGKILL. The shell reads from a pipe whose other end only this
 * process holds. When the process ends, the kernel closes that end, and the read returns. The shell has its own process
 * group, so that Ctrl-C does not end it first.
 */
export function whenThisEnds(script: string, ...args: readonly string[]) {
  const shell = spawn("/bin/sh", ["-c", `read -r _; ${script}`, "guard", ...args], {
    detached: true,
    cwd: "/",
    env: CHILD_ENVIRONMENT,
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.on("error", () => undefined);
  shell.stdin.on("error", () => undefined);
  shell.unref();
  if (shell.stdin instanceof Socket) shell.stdin.unref();
  return shell;
}
