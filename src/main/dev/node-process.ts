/** Runs nodes in processes of their own. They end with this process. */
import type { ReadyNode as ReadyLine } from "../../adapters/cli/present.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import type { Service } from "../service.ts";
import { EmbeddedError } from "./embedded/embedded-error.ts";
import { endChild, launch, readyLine } from "./embedded/processes.ts";

export type Variables = Readonly<Record<string, string>>;

/**
 * Runs `fencepost start` with only `variables`, PATH and HOME in its environment, and waits until the node is ready.
 * `name` is used in error messages.
 */
export async function startNode(
  name: string,
  launcher: readonly string[],
  { variables, directory }: { readonly variables: Variables; readonly directory?: string },
) {
  const { PATH = "", HOME = "" } = process.env;
  const options = { cwd: directory, env: { PATH, HOME, ...variables } };
  const command = [process.execPath, ...launcher, "start"];
  const child = launch(command, { ...options, stdio: ["ignore", "pipe", "pipe"] }, "TERM");
  const ready = await readyLine<ReadyLine>(child, ({ stderr, how }) => {
    const message = stderr.trim().split("\n").slice(-3).join(" ");
    return new EmbeddedError("START_FAILED", `${name} did not start: ${message || how}`);
  });
  return { ...ready, child };
}

/**
 * Node options that a child inherits: only those of the garbage collector. A second debugger, for example, would find
 * its port in use.
 */
export function inherited(options: readonly string[]): readonly string[] {
  return options.filter((option) => /^--(max[-_]semi[-_]space[-_]size=|no[-_]parallel[-_]scavenge$)/.test(option));
}

export interface NodeProcessOptions {
  /** Command line of `dev`, launcher first. */
  readonly argv: readonly string[];
  /** Whole environment of the node's process. */
  readonly variables: NodeJS.ProcessEnv;
  readonly drainTimeoutMs: number;
  /** Called if the node's process ends without being stopped. */
  readonly onLost: (how: string) => void;
}

/** Ready message of a node's process. */
export type ReadyNode = Pick<Service, "url" | "adminUrl" | "nodeId" | "signers"> & { readonly chainId: number };

export type NodeProcess = Awaited<ReturnType<typeof startNodeProcess>>;

const GRACE_MS = 5_000;

/**
 * Starts the node of `dev` if there is a terminal: the same command in a child process, on the database and the chain
 * of this process. A key press can kill the node like a machine crash; a new node process then continues from the
 * database. Rejects if the node ends before it is ready; it has then printed the reason on the shared standard error.
 */
export async function startNodeProcess({ argv, variables, ...options }: NodeProcessOptions, port: number) {
  const command = [process.execPath, ...inherited(process.execArgv), ...argv, "--port", String(port)];
  const child = launch(command, { env: variables, stdio: ["ignore", "ignore", "inherit", "ipc"] }, "TERM");
  let isWanted = true;
  const end = (...signals: Parameters<typeof endChild>[2]) => {
    isWanted = false;
    return endChild(child, systemClock, signals);
  };
  const ready = new Promise<ReadyNode>((resolve) =>
    child.handle.once("message", (message) => resolve(message as ReadyNode)),
  );
  const first = await Promise.race([ready, child.ended]);
  if ("how" in first) throw new EmbeddedError("START_FAILED", `the node did not start (${first.how})`);
  void child.ended.then(({ how }) => isWanted && options.onLost(how));
  return {
    ...first,
    chainIds: [first.chainId],
    pid: child.handle.pid,
    /** Sends SIGKILL, so that the node cannot release its lanes. Resolves when the process has ended. */
    kill: () => end(),
    stop: () => end(["SIGTERM", options.drainTimeoutMs + GRACE_MS]),
  };
}

/** Environment variable that marks the chain as an embedded dev chain. */
export const ON_EMBEDDED_CHAIN = { DEV_NODE_ON_EMBEDDED_CHAIN: "1" } as const;

export function isOnEmbeddedChain(): boolean {
  return process.send !== undefined && process.env.DEV_NODE_ON_EMBEDDED_CHAIN === "1";
}

/** Sends the ready message to the parent, if `startNodeProcess` started this process. */
export function reportReady(node: ReadyNode): void {
  process.send?.(node);
}
