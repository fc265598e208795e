import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Forked {
  readonly url: string;
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

/** One of `bench/processes`, in TypeScript; it says where it listens, and ends with this process. */
export async function forkServer(name: string, argv: readonly string[] = []): Promise<Forked> {
  const child = fork(fileURLToPath(new URL(`../processes/${name}.ts`, import.meta.url)), argv, {
    execArgv: ["--import", import.meta.resolve("jiti/register")],
    serialization: "advanced",
  });
  const [{ url }] = (await once(child, "message")) as [{ readonly url: string }];
  return {
    url,
    child,
    stop: async () => {
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
    },
  };
}
