import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../../ports/clock.ts";
import { EmbeddedError } from "../embedded-error.ts";
import { findProcess, sendSignal, waitForExit } from "../processes.ts";

const IMMEDIATE_STOP = [["SIGQUIT", 5_000]] as const;
/** Stop signals of PostgreSQL, each with its time limit. */
export const STOP_SIGNALS = { fast: [["SIGINT", 15_000], ...IMMEDIATE_STOP], immediate: IMMEDIATE_STOP } as const;

/** Reads `postmaster.pid`, which the server writes line by line while it starts. */
export async function readPostmasterFile(data: string) {
  const text = await readFile(pathIn(data), "utf8").catch(() => "");
  const lines = text.split("\n");
  const pid = Number.parseInt(lines[0] ?? "", 10);
  // Line 8 is the state that pg_ctl waits for: "starting", "ready" or "stopping"; a "standby" accepts reads.
  const state = lines[7]?.trim();
  return Number.isNaN(pid) ? null : { pid, ready: state === "ready" || state === "standby" };
}

/**
 * Stops an earlier server of this directory, or removes its pid file. This process holds the directory's lock, so a
 * server that still runs was left behind when its supervisor was killed: it is stopped. If the pid in the file now
 * belongs to another program, the file is removed. Otherwise PostgreSQL would refuse to start, because it only checks
 * that the pid is alive. The removal is safe even if backends of the dead server still run: PostgreSQL also refuses to
 * start while its shared memory is in use.
 */
export async function clearLeftover(data: string, clock: Clock, log: (line: string) => void): Promise<void> {
  const file = await readPostmasterFile(data);
  if (file === null) return;
  if (await serves(file.pid, data)) {
    log(`stopping the PostgreSQL server (pid ${file.pid}) that an earlier run left behind`);
    await stopLeftover(file.pid, clock);
  } else {
    log("the last PostgreSQL server here was killed; it will recover its data");
    await rm(pathIn(data), { force: true });
  }
}

/**
 * True if the process is a postmaster of this data directory, which is then its working directory. If the system hides
 * the working directory, the command line must name the data directory.
 */
async function serves(pid: number, data: string) {
  const live = await findProcess(pid);
  if (live === null || pid === process.pid) return false;
  return live.workingDirectory === data || `${live.command} `.includes(` -D ${data} `);
}

async function stopLeftover(pid: number, clock: Clock) {
  for (const [signal, withinMs] of STOP_SIGNALS.fast) {
    sendSignal(pid, signal);
    if (await waitForExit(clock, pid, withinMs)) return;
  }
  throw new EmbeddedError("ALREADY_RUNNING", `a PostgreSQL server (pid ${pid}) holds this directory and does not stop`);
}

function pathIn(data: string) {
  return join(data, "postmaster.pid");
}
