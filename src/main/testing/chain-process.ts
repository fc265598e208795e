import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { EmbeddedError } from "../dev/embedded/embedded-error.ts";
import type { ChainOptions, DevAccount } from "../dev/embedded/start-chain.ts";

/** What a test does to its chain. */
export interface ChainInHand {
  /** Makes blocks now, also while mining is paused. */
  mine(blocks?: number): Promise<void>;
  /** Replaces the last blocks, up to 64, by a branch that is one longer. What they held is gone from the chain and its pool. */
  reorg(depth: number): Promise<void>;
  /** No more blocks by themselves. Resolves when the one that was being made is there. */
  pauseMining(): Promise<void>;
  resumeMining(): Promise<void>;
  /** Of every block from the next one on; null: it follows the chain's own rule again. */
  setBaseFee(wei: bigint | null): Promise<void>;
  /** Asks the chain; rejects where it answers with an error. */
  rpc(method: string, params?: readonly unknown[]): Promise<unknown>;
}

export interface ChainOrder {
  readonly id: number;
  readonly order: "mine" | "reorg" | "pause" | "resume" | "setBaseFee";
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

/** As it is built. */
const MAIN = fileURLToPath(new URL("./chain-main.ts", import.meta.url)).replace(/\.ts$/, ".js");

/**
 * A chain in a process of its own: a contract can make EDR panic, which ends the process that EDR runs in, and fake timers of
 * a test stop no blocks there.
 */
export async function startChainProcess(options: ChainOptions) {
  const child = spawn(process.execPath, [MAIN, JSON.stringify(options)], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: {},
  });
  const words: string[] = [];
  child.stderr?.setEncoding("utf8").on("data", (text: string) => words.push(text));
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", () => resolve(words.join("").trim().split("\n").at(-1) || "it ended without a word"));
  });
  const ready = await firstAnswer(child, ended);
  const ask = orders(child, ended);
  release(child);
  const inHand: ChainInHand = {
    mine: (blocks = 1) => ask("mine", blocks),
    reorg: (depth) => ask("reorg", depth),
    pauseMining: () => ask("pause", null),
    resumeMining: () => ask("resume", null),
    setBaseFee: (wei) => ask("setBaseFee", wei === null ? null : String(wei)),
    rpc: (method, params = []) => call(ready.url, method, params),
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
  const first = new Promise<ChainAnswer>((resolve) => child.once("message", (said) => resolve(said as ChainAnswer)));
  const answer = await Promise.race([first, ended.then((failed): ChainAnswer => ({ failed }))]);
  if ("ready" in answer) return answer.ready;
  child.kill("SIGKILL");
  const why = "failed" in answer ? answer.failed : "it said something else";
  throw new EmbeddedError("START_FAILED", `the chain of the test did not start: ${why}`);
}

function orders(child: ChildProcess, ended: Promise<string>) {
  const open = new Map<number, (error: string | undefined) => void>();
  let last = 0;
  const answered = (id: number, error?: string) => {
    open.get(id)?.(error);
    open.delete(id);
    if (open.size === 0) child.channel?.unref();
  };
  child.on("message", (said) => {
    const answer = said as ChainAnswer;
    if ("id" in answer) answered(answer.id, answer.error);
  });
  void ended.then((how) => {
    for (const id of open.keys()) answered(id, `the chain ended: ${how}`);
  });
  return (order: ChainOrder["order"], value: ChainOrder["value"]) =>
    new Promise<void>((resolve, reject) => {
      const id = ++last;
      // Who waits for an answer keeps the process.
      child.channel?.ref();
      open.set(id, (error) => (error === undefined ? resolve() : reject(new Error(error))));
      child.send({ id, order, value } satisfies ChainOrder, (error) => {
        if (error !== null) answered(id, `the chain has ended: ${error.message}`);
      });
    });
}

/** A test that forgets to stop its stack can end all the same; the child ends with it. */
function release(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
  if (child.stderr !== null && "unref" in child.stderr) (child.stderr as unknown as { unref(): void }).unref();
}

async function call(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const answer = (await response.json()) as {
    readonly result?: unknown;
    readonly error?: { readonly message: string };
  };
  if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}
