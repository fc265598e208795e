import { mkdir } from "node:fs/promises";
import { connect as connectTo } from "node:net";
import { join } from "node:path";
import { it as base } from "./integration.ts";
import { type FencepostProcess, spawnFencepost, type Variables } from "./node-process.ts";
import { seedCluster } from "./seed-cluster.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

interface CommandLine {
  readonly directory: string;
  run(argv: readonly string[], variables?: Variables): FencepostProcess;
}

interface Fixtures {
  readonly fencepost: CommandLine;
  /** The command line in a directory that already has a prepared database. */
  readonly seeded: CommandLine;
}

export const it = base.extend<Fixtures>({
  fencepost: async ({ task: _ }, use) => {
    const directory = await makeTemporaryDirectory();
    const started: FencepostProcess[] = [];
    const run: CommandLine["run"] = (argv, variables = {}) => {
      const child = spawnFencepost(argv, { variables, directory: directory.path });
      started.push(child);
      return child;
    };
    await use({ directory: directory.path, run });
    for (const child of started) child.signal("SIGKILL");
    await Promise.all(started.map((child) => child.exited));
    await directory.remove();
  },
  seeded: async ({ fencepost }, use) => {
    const data = join(fencepost.directory, ".fencepost");
    await mkdir(data);
    await seedCluster(data);
    await use(fencepost);
  },
});

export const DEV = ["dev", "--port", "0", "--json"];

export const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connectTo(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });

export const portIn = (said: string, pattern: RegExp) => Number(pattern.exec(said)?.[1]);

export const linesOf = (text: string) => text.trimEnd().split("\n");
