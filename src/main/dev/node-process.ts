/**
 * The node of `dev` on a terminal, in a process of its own: the same command again, on the database and the chain of
 * this process. So a key can kill it like a crashing machine, and another one continues from the database.
 */
import { systemClock } from "../../adapters/system/clock.ts";
import type { Service } from "../service.ts";
import { inherited } from "./demo/node-child.ts";
import { EmbeddedError } from "./embedded/embedded-error.ts";
import { endChild, launch } from "./embedded/processes.ts";

export interface NodeProcessOptions {
  /** Command line of `dev`, launcher first. */
  readonly argv: readonly string[];
  /** Its whole environment. */
  readonly variables: NodeJS.ProcessEnv;
  readonly drainTimeoutMs: number;
  /** Called if it ends without being asked to. */
  readonly onLost: (how: string) => void;
}

/** Ready message of the process. */
export type ReadyNode = Pick<Service, "url" | "adminUrl" | "nodeId" | "signers"> & { readonly chainId: number };

export type NodeProcess = Awaited<ReturnType<typeof startNodeProcess>>;

const GRACE_MS = 5_000;

/** Rejects if it ends before it is ready. Its reason is on the shared standard error. */
export async function startNodeProcess({ argv, variables, ...options }: NodeProcessOptions, port: number) {
  const command = [process.execPath, ...inherited(process.execArgv), ...argv, "--port", String(port)];
  const child = launch(command, { env: variables, stdio: ["ignore", "ignore", "inherit", "ipc"] }, "TERM");
  let isWanted = true;
  const end = (work: () => Promise<unknown>) => {
    isWanted = false;
    return work();
  };
  const ready = new Promise<ReadyNode>((resolve) =>
    child.handle.once("message", (message) => resolve(message as ReadyNode)),
  );
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
    /** Sends SIGKILL, so nothing is handed over. Resolves when it has ended. */
    kill: () =>
      end(() => {
        child.handle.kill("SIGKILL");
        return child.ended;
      }),
    stop: async () =>
      void (await end(() => endChild(child, systemClock, [["SIGTERM", options.drainTimeoutMs + GRACE_MS]]))),
  };
}

/** Variable that marks the chain as a dev chain. */
export const ON_EMBEDDED_CHAIN = { DEV_NODE_ON_EMBEDDED_CHAIN: "1" } as const;

export function isOnEmbeddedChain(): boolean {
  return process.send !== undefined && process.env.DEV_NODE_ON_EMBEDDED_CHAIN === "1";
}

/** Sends the ready message to the parent, if `startNodeProcess` started this process. */
export function reportReady(node: ReadyNode): void {
  process.send?.(node);
}
