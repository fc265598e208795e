import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { callChain } from "../dev/embedded/chain/json-rpc.ts";
import { EmbeddedError } from "../dev/embedded/embedded-error.ts";
import type { ChainOptions, DevAccount } from "../dev/embedded/start-chain.ts";

/** Controls of a test's chain. */
export interface ChainInHand {
  /** Makes blocks now, also while mining is paused. */
  mine(blocks?: number): Promise<void>;
  /**
   * Replaces the last blocks, up to 64, by a branch that is one block longer. Their transactions are removed from
   * chain and pool.
   */
  reorg(depth: number): Promise<void>;
  /** Stops the block timer. Resolves when the block in progress is made. */
  pauseMining(): Promise<void>;
  resumeMining(): Promise<void>;
  /** Sets the base fee of every block from the next one on; null: the chain's own rule again. */
  setBaseFee(wei: bigint | null): Promise<void>;
  /** Calls the chain; rejects if it answers with an error. */
  rpc(method: string, params?: readonly unknown[]): Promise<unknown>;
}

export interface ChainCommand {
  readonly id: number;
  readonly command: "mine" | "reorg" | "pause" | "resume" | "setBaseFee";
  readonly value: number | string | null;
}

interface ReadyChain {
  readonly url: string;
  readonly chainId: number;
  readonly accounts: readonly DevAccount[];
}

export type ChainAnswer =
  | { readonly ready: ReadyChain }
  | { readonly failed: string }
  | { readonly id: number; readonly error?: string };

export type ChainProcess = Awaited<ReturnType<typeof startChainProcess>>;

/** The compiled file. */
const MAIN = fileURLToPath(new URL("./chain-main.ts", import.meta.url)).replace(/\.ts$/, ".js");

/**
 * A chain in a process of its own: a contract can make EDR panic, which ends the process that runs EDR, and a test's
 * fake timers do not stop its blocks.
 */
export async function startChainProcess(options: ChainOptions) {
  const child = spawn(process.execPath, [MAIN, JSON.stringify(options)], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: {},
  });
  const stderr: string[] = [];
  child.stderr?.setEncoding("utf8").on("data", (text: string) => stderr.push(text));
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", () => resolve(stderr.join("").trim().split("\n").at(-1) || "it ended without a message"));
  });
  const ready = await firstAnswer(child, ended);
  const ask = commands(child, ended);
  release(child);
  const inHand: ChainInHand = {
    mine: (blocks = 1) => ask("mine", blocks),
    reorg: (depth) => ask("reorg", depth),
    pauseMining: () => ask("pause", null),
    resumeMining: () => ask("resume", null),
    setBaseFee: (wei) => ask("setBaseFee", wei === null ? null : String(wei)),
    rpc: (method, params = []) => callChain(ready.url, method, params),
  };
  return {
    ...ready,
    inHand,
    stop: async () => {
      child.ref();
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function firstAnswer(child: ChildProcess, ended: Promise<string>): Promise<ReadyChain> {
  const first = new Promise<ChainAnswer>((resolve) =>
    child.once("message", (message) => resolve(message as ChainAnswer)),
  );
  const answer = await Promise.race([first, ended.then((failed): ChainAnswer => ({ failed }))]);
  if ("ready" in answer) return answer.ready;
  child.kill("SIGKILL");
  const why = "failed" in answer ? answer.failed : "its first message was not its ready message";
  throw new EmbeddedError("START_FAILED", `the chain of the test did not start: ${why}`);
}

function commands(child: ChildProcess, ended: Promise<string>) {
  const open = new Map<number, (error: string | undefined) => void>();
  let last = 0;
  const answered = (id: number, error?: string) => {
    open.get(id)?.(error);
    open.delete(id);
    if (open.size === 0) child.channel?.unref();
  };
  child.on("message", (message) => {
    const answer = message as ChainAnswer;
    if ("id" in answer) answered(answer.id, answer.error);
  });
  void ended.then((how) => {
    for (const id of open.keys()) answered(id, `the chain ended: ${how}`);
  });
  return (command: ChainCommand["command"], value: ChainCommand["value"]) =>
    new Promise<void>((resolve, reject) => {
      const id = ++last;
      // An open call keeps the process alive.
      child.channel?.ref();
      open.set(id, (error) => (error === undefined ? resolve() : reject(new Error(error))));
      child.send({ id, command, value } satisfies ChainCommand, (error) => {
        if (error !== null) answered(id, `the chain has ended: ${error.message}`);
      });
    });
}

/** Lets the process end although a test forgot to stop its stack; the child ends with it. */
function release(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
  if (child.stderr !== null && "unref" in child.stderr) (child.stderr as unknown as { unref(): void }).unref();
}
