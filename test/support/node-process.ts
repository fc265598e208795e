import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createClient, type FencepostClient } from "../../src/client/index.ts";

const root = new URL("../../", import.meta.url);
const launcher = fileURLToPath(new URL("bin/fencepost.js", root));
const struckNode = fileURLToPath(new URL("crashing-node.mjs", import.meta.url));

export type Variables = Readonly<Record<string, string>>;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Ready {
  readonly url: string;
  /** The URL for operators, if it is on another port than that for callers. */
  readonly adminUrl?: string;
  readonly nodeId: string;
}

/** A `fencepost` command in a process of its own. */
export interface FencepostProcess {
  readonly pid: number;
  /** Resolves when the process is ready. Rejects with its standard error if it ends before that. */
  readonly ready: Promise<Ready>;
  readonly exited: Promise<Exit>;
  stdout(): string;
  stderr(): string;
  signal(name: NodeJS.Signals): void;
  /** Sends a signal as a terminal does with Ctrl-C: to the process and all its children. */
  signalGroup(name: NodeJS.Signals): void;
}

export interface NodeProcess extends FencepostProcess, Ready {
  readonly client: FencepostClient;
}

export interface SpawnOptions {
  readonly variables?: Variables;
  readonly directory?: string;
}

/** Starts the package as shipped, as `npx fencepost` does. */
export function spawnFencepost(argv: readonly string[], options: SpawnOptions = {}): FencepostProcess {
  return spawnProgram(launcher, argv, options);
}

/**
 * V8 would compile undici's parser again, optimised, during the first requests: an eighth of the CPU time of a node that
 * runs for a second.
 */
const SHORT_LIVED = "--wasm-tiering-budget=1000000000";

/**
 * Runs `fencepost start` without the V8 heap settings that the usual launcher adds. With such settings Node recompiles
 * its own modules at every start, which is a tenth of the CPU time of a node that runs for a second.
 */
export function spawnNode(options: SpawnOptions): FencepostProcess {
  return spawnScript([SHORT_LIVED, launcher, "start"], options);
}

/** A failpoint, and the signal that the node sends itself there: SIGKILL, or SIGSTOP until the test resumes it. */
export interface Stroke {
  readonly failpoint: string;
  readonly passage: number;
  readonly signal: "SIGKILL" | "SIGSTOP";
}

/** Starts a node that sends itself a signal when it passes a failpoint for the n-th time. */
export function spawnStruckNode({ failpoint, passage, signal }: Stroke, options: SpawnOptions): FencepostProcess {
  return spawnScript([SHORT_LIVED, struckNode, failpoint, String(passage), signal], options);
}

export async function nodeOnceReady(child: FencepostProcess): Promise<NodeProcess> {
  const { url, nodeId } = await child.ready;
  return { ...child, url, nodeId, client: createClient({ url, repeat: false }) };
}

const alive = new Set<() => void>();
process.on("exit", () => {
  for (const kill of alive) kill();
});

/** Starts a script that belongs to the tests. */
export function spawnScript(argv: readonly string[], options: SpawnOptions = {}): FencepostProcess {
  return spawnProgram(process.execPath, argv, options);
}

/** Starts a program in a process that ends with the tests. */
export function spawnProgram(
  program: string,
  argv: readonly string[],
  { variables = {}, directory }: SpawnOptions,
): FencepostProcess {
  const child = spawn(program, argv, {
    env: { ...cleanEnvironment(), ...variables },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    ...(directory === undefined ? {} : { cwd: directory }),
  });
  const kill = () => void child.kill("SIGKILL");
  alive.add(kill);
  const written = { stdout: "", stderr: "" };
  const lines = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      written[name] += text;
      for (const look of lines) look();
    });
  }
  const exited = new Promise<Exit>((resolve) => {
    child.on("close", (code, signal) => {
      alive.delete(kill);
      resolve({ code, signal });
    });
  });
  const ready = new Promise<Ready>((resolve, reject) => {
    lines.add(() => {
      const line = /^\{"ready":true.*\}$/m.exec(written.stdout);
      if (line !== null) resolve(JSON.parse(line[0]) as Ready);
    });
    void exited.then((exit) =>
      reject(new Error(`never ready: ${JSON.stringify(exit)}\n${written.stdout}\n${written.stderr}`)),
    );
  });
  // A test that expects the start to fail does not await `ready`; its rejection must not end the test process.
  ready.catch(() => undefined);
  return {
    pid: child.pid as number,
    ready,
    exited,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    signal: (name) => void child.kill(name),
    signalGroup: (name) => void process.kill(-(child.pid as number), name),
  };
}

/** The environment variables without Fencepost's settings and without the test runner's own hooks. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const foreign = (name: string) => name.startsWith("FENCEPOST_") || name === "NODE_OPTIONS";
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign(name)));
}
