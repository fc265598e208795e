import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { createClient } from "../../../client/index.ts";

export type NodeChild = Awaited<ReturnType<typeof startNodeChild>>;

/**
 * A node in a real process that can be killed and paused. It runs in its own directory, so that it does not read the
 * configuration file of the user's directory.
 */
export async function startNodeChild(name: string, variables: Readonly<Record<string, string>>, directory: string) {
  const { PATH = "", HOME = "" } = process.env;
  // This process's launcher also starts nodes.
  const launcher = process.argv[1] as string;
  const child = spawn(process.execPath, [...inherited(process.execArgv), launcher, "start"], {
    cwd: directory,
    env: { PATH, HOME, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const { url, nodeId } = await readyLine(name, child);
  child.stderr?.resume();
  return {
    name,
    url,
    nodeId,
    client: createClient({ url, repeat: false }),
    /** False once it was killed or has ended. */
    alive: () => child.exitCode === null && child.signalCode === null,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    stop: async () => {
      child.kill("SIGCONT");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** Inherits only the launcher's garbage collector options: a second debugger would find its port in use. */
export function inherited(options: readonly string[]): readonly string[] {
  return options.filter((option) => /^--(max[-_]semi[-_]space[-_]size=|no[-_]parallel[-_]scavenge$)/.test(option));
}

async function readyLine(
  name: string,
  child: ChildProcess,
): Promise<{ readonly url: string; readonly nodeId: string }> {
  const stderr: string[] = [];
  child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk.toString()));
  if (child.stdout === null) throw new Error(`${name} has no standard output`);
  for await (const line of createInterface({ input: child.stdout })) {
    child.stderr?.removeAllListeners("data");
    return JSON.parse(line);
  }
  throw new Error(`${name} ended before it was ready: ${stderr.join("").trim().split("\n").at(-1)}`);
}
