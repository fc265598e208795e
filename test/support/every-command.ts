import { readdir } from "node:fs/promises";
import { findProcess, run } from "../../src/main/dev/embedded/processes.ts";

/** The command lines of all processes on this machine. */
export async function everyCommand(): Promise<string[]> {
  if (process.platform !== "linux") return (await run("ps", ["-A", "-ww", "-o", "command="])).stdout.split("\n");
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  return (await Promise.all(pids.map(findProcess))).map((live) => live?.command ?? "");
}
