import { fork } from "node:child_process";
import { once } from "node:events";
import { constants, setPriority } from "node:os";
import type { Job } from "./process-main.ts";
import { V8_OPTIONS } from "./v8-options.ts";

interface Around {
  /** Time limit in milliseconds, after which the process is killed; absent: none. */
  readonly timeoutMs?: number;
  /** Drops what the process prints. */
  readonly isQuiet?: boolean;
  /** Leaves the cores to all other processes whenever they need them. */
  readonly isLowPriority?: boolean;
}

/** Does a job in a process of its own, from a bundle of the simulation. Rejects if that process ends before the result. */
export async function inProcess<T>(
  bundle: string,
  job: Job,
  { timeoutMs, isQuiet, isLowPriority }: Around = {},
): Promise<T> {
  const child = fork(bundle, [JSON.stringify(job)], {
    execArgv: V8_OPTIONS,
    stdio: isQuiet ? "ignore" : "inherit",
    ...(timeoutMs !== undefined && { timeout: timeoutMs, killSignal: "SIGKILL" }),
  });
  if (isLowPriority && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`the process of the simulation ended with ${code ?? signal}: ${JSON.stringify(job)}`);
  });
  try {
    const [result] = await Promise.race([once(child, "message"), ended]);
    return result as T;
  } finally {
    ended.catch(() => undefined);
    child.kill();
  }
}
