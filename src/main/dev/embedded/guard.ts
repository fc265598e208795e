import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { Socket } from "node:net";
import type { Clock } from "../../../ports/clock.ts";
import { CHILD_ENVIRONMENT, settlesWithin } from "./processes.ts";

/** A child that does not outlive us. */
export interface Child {
  readonly handle: ChildProcess;
  readonly ended: Promise<Ending>;
}

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
export function launch(command: readonly string[], options: SpawnOptions, lastSignal: "INT" | "TERM"): Child {
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
