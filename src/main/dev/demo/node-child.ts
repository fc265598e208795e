import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { createClient } from "../../../client/index.ts";

export type NodeChild = Awaited<ReturnType<typeof startNodeChild>>;

/**
 * A node of the demonstration: a real process that can be killed and paused like any other. It runs in a directory of its own:
 * a configuration file where the command was given is another node's.
 */
export async function startNodeChild(name: string, variables: Readonly<Record<string, string>>, directory: string) {
  const { PATH = "", HOME = "" } = process.env;
  // The launcher that this process was started by starts a node, too.
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

/** Of the options of Node only the room for young objects, which the launcher gave: a second debugger would find its port taken. */
export function inherited(options: readonly string[]): readonly string[] {
  return options.filter((option) => /^--(max[-_]semi[-_]space[-_]size=|no[-_]parallel[-_]scavenge$)/.test(option));
}

async function readyLine(
  name: string,
  child: ChildProcess,
): Promise<{ readonly url: string; readonly nodeId: string }> {
  const said: string[] = [];
  child.stderr?.on("data", (chunk: Buffer) => said.push(chunk.toString()));
  if (child.stdout === null) throw new Error(`${name} has no standard output`);
  for await (const line of createInterface({ input: child.stdout })) {
    child.stderr?.removeAllListeners("data");
    return JSON.parse(line);
  }
  throw new Error(`${name} ended before it was ready: ${said.join("").trim().split("\n").at(-1) ?? "it said nothing"}`);
}
