import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export interface NodeProcess {
  readonly url: string;
  readonly pid: number;
  /** From the start of the process until it accepts requests. */
  readonly readyMs: number;
  residentMiB(): Promise<number>;
  /** Gracefully, as SIGTERM does it. */
  stop(): Promise<void>;
}

export interface NodeOptions {
  readonly launcher: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Ten thousand keys are more than an environment variable can hold. */
  readonly configFile: string;
  /** Logs go there as they would in production: at the default level, to a file. */
  readonly logFile: string;
  readonly profileTo: string | null;
}

/** The launcher of this checkout. */
export const LAUNCHER = fileURLToPath(new URL("../../bin/fencepost.js", import.meta.url));

/** `fencepost start`, what ships, in a process of its own, as a user starts it. */
export async function startNode({
  launcher,
  environment,
  configFile,
  logFile,
  profileTo,
}: NodeOptions): Promise<NodeProcess> {
  const log = openSync(logFile, "a");
  const [program, ...argv] = profileTo === null ? [launcher] : [process.execPath, ...profiling(profileTo), launcher];
  const startMs = performance.now();
  const child = spawn(program as string, [...argv, "start", "--config", configFile], {
    env: { PATH: process.env.PATH, FENCEPOST_AUTH: "none", FENCEPOST_PORT: "0", ...environment },
    stdio: ["ignore", "pipe", log],
  });
  const output = child.stdout as Readable;
  closeSync(log);
  // Whatever becomes of the bench, no node stays behind.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const exited = once(child, "exit").finally(() => process.off("exit", kill));
  const [line] = (await Promise.race([
    once(createInterface(output), "line"),
    exited.then(() => Promise.reject(new Error(`fencepost start ended; its log is ${logFile}`))),
  ])) as [string];
  const pid = child.pid as number;
  return {
    url: (JSON.parse(line) as { readonly url: string }).url,
    pid,
    readyMs: performance.now() - startMs,
    residentMiB: () => residentMiB(pid),
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** Node takes no profile by NODE_OPTIONS: it is started here, with the room that the launcher gives it. */
const profiling = (directory: string): readonly string[] => [
  "--cpu-prof",
  "--cpu-prof-dir",
  directory,
  "--max-semi-space-size=64",
];

/** With its signing process. */
async function residentMiB(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", String(pid), "--ppid", String(pid)]);
  return (
    stdout
      .trim()
      .split(/\s+/)
      .reduce((sum, kiB) => sum + Number(kiB), 0) / 1024
  );
}
