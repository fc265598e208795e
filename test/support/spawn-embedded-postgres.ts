import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

export interface Message {
  readonly line?: string;
  readonly url?: string;
  readonly pid?: number;
  readonly home?: string;
  readonly error?: string;
  readonly interrupted?: true;
}

export interface PostgresProcess {
  readonly child: ChildProcess;
  /** Resolves with the process's next message that has this member; rejects if the process ends without one. */
  next<K extends keyof Message>(member: K): Promise<Message & Required<Pick<Message, K>>>;
  /** Sends kill −9 and waits until the process is gone. */
  kill(): Promise<void>;
}

export interface SpawnOptions {
  readonly directory: string;
  readonly native?: string;
  readonly account?: { readonly uid: number; readonly gid: number };
}

const source = new URL("./embedded-postgres-process.ts", import.meta.url);
const place = new URL("../../src/main/node/bundled.js", import.meta.url);
const script = await bundled();

/**
 * Bundles the script into one JavaScript file that every account can read: compiling the sources in each process would
 * cost more.
 */
async function bundled(): Promise<string> {
  const { path } = await makeTemporaryDirectory();
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  const file = join(path, "embedded-postgres-process.mjs");
  const bundle = await rolldown({
    input: fileURLToPath(source),
    platform: "node",
    logLevel: "warn",
    // Makes the bundle resolve packages, and package.json by its relative path, as if it were in src/main/node.
    transform: { define: { "import.meta.url": JSON.stringify(place.href) } },
  });
  await bundle.write({ file, codeSplitting: false });
  await bundle.close();
  return file;
}

/** Starts a supervisor in a process of its own, which a test can kill, interrupt, or run under another account. */
export function spawnEmbeddedPostgres({ directory, native, account }: SpawnOptions): PostgresProcess {
  const args = [script, directory, ...(native === undefined ? [] : [native])];
  const child = spawn(process.execPath, args, {
    ...account,
    detached: true,
    env: { PATH: process.env.PATH },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()));
  const messages: Message[] = [];
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const look of [...waiting]) look();
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    messages.push(JSON.parse(line) as Message);
    wake();
  });
  return {
    child,
    next: (member) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = messages.find((message) => message[member] !== undefined);
          if (found === undefined) return;
          waiting.delete(look);
          messages.splice(messages.indexOf(found), 1);
          resolve(found as Message & Required<Pick<Message, typeof member>>);
        };
        waiting.add(look);
        look();
        ended.then(() => reject(new Error(`ended without "${member}": ${JSON.stringify(messages)}`)));
      }),
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
