/**
 * The node of `dev` on a terminal, in a process of its own: the same command once more, on the database and the chain that this
 * process keeps. So a key can kill it as a machine would, without a last word, and another goes on with what the database has.
 */
import { systemClock } from "../../adapters/system/clock.ts";
import type { Service } from "../service.ts";
import { inherited } from "./demo/node-child.ts";
import { EmbeddedError } from "./embedded/embedded-error.ts";
import { endChild, launch } from "./embedded/processes.ts";

export interface NodeProcessOptions {
  /** The command line of `dev`, launcher first. */
  readonly argv: readonly string[];
  /** All of its environment. */
  readonly variables: NodeJS.ProcessEnv;
  readonly drainTimeoutMs: number;
  /** It ended, and nobody here asked for that. */
  readonly onLost: (how: string) => void;
}

/** As the process says it, once it is ready. */
export type ReadyNode = Pick<Service, "url" | "adminUrl" | "nodeId" | "signers"> & { readonly chainId: number };

export type NodeProcess = Awaited<ReturnType<typeof startNodeProcess>>;

const GRACE_MS = 5_000;

/** Rejects where it ends before it is ready; why, it has said itself on the standard error that it shares with us. */
export async function startNodeProcess({ argv, variables, ...options }: NodeProcessOptions, port: number) {
  const command = [process.execPath, ...inherited(process.execArgv), ...argv, "--port", String(port)];
  const child = launch(command, { env: variables, stdio: ["ignore", "ignore", "inherit", "ipc"] }, "TERM");
  let isWanted = true;
  const end = (work: () => Promise<unknown>) => {
    isWanted = false;
    return work();
  };
  const ready = new Promise<ReadyNode>((resolve) => child.handle.once("message", (said) => resolve(said as ReadyNode)));
  const gone = child.ended.then(({ how }) =>
    Promise.reject(new EmbeddedError("START_FAILED", `the node did not start (${how})`)),
  );
  const node = await Promise.race([ready, gone]);
  gone.catch(() => undefined);
  void child.ended.then(({ how }) => isWanted && options.onLost(how));
  return {
    ...node,
    chainIds: [node.chainId],
    pid: child.handle.pid,
    /** SIGKILL: nothing is handed over. Resolves when it is gone. */
    kill: () =>
      end(() => {
        child.handle.kill("SIGKILL");
        return child.ended;
      }),
    stop: async () =>
      void (await end(() => endChild(child, systemClock, [["SIGTERM", options.drainTimeoutMs + GRACE_MS]]))),
  };
}

/** Tells such a process that the chain it is given is one to play with. */
export const ON_EMBEDDED_CHAIN = { DEV_NODE_ON_EMBEDDED_CHAIN: "1" } as const;

export function isOnEmbeddedChain(): boolean {
  return process.send !== undefined && process.env.DEV_NODE_ON_EMBEDDED_CHAIN === "1";
}

/** In a process that `startNodeProcess` started. */
export function reportReady(node: ReadyNode): void {
  process.send?.(node);
}
