/** Chains that run in a process of their own. Whatever happens to them, we are there to say so, and they end when we do. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Clock } from "../../../../ports/clock.ts";
import { EmbeddedError, messageOf, systemCode } from "../embedded-error.ts";
import { guardChild } from "../guard.ts";
import { LOOPBACK } from "../loopback-port.ts";
import { settlesWithin } from "../processes.ts";
import type { ChainSettings, DevChain } from "../start-chain.ts";
import { deriveAccounts } from "./accounts.ts";
import { type Answer, resultOf } from "./json-rpc.ts";

export interface ChildSpec {
  /** For people. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly port: number;
  readonly settings: ChainSettings;
  readonly mineMethod: "anvil_mine" | "hardhat_mine";
  /** Where there is no such command. */
  readonly notInstalled: string;
  readonly clock: Clock;
}

interface Child {
  readonly handle: ChildProcess;
  /** Resolves when it has ended, with what it said last. */
  readonly ended: Promise<string>;
}

const READY_POLL_MS = 50;
const READY_TIMEOUT_MS = 30_000;
const STOP_MS = 5_000;
const LAST_WORDS_CHARACTERS = 2_000;

export async function startChildChain(spec: ChildSpec): Promise<DevChain> {
  const { port, settings, mineMethod, clock } = spec;
  const url = `http://${LOOPBACK}:${port}`;
  const rpc = async (method: string, params: readonly unknown[] = []) =>
    resultOf(method, await post(url, { jsonrpc: "2.0", id: 1, method, params }));
  const child = launch(spec);
  const stop = () => end(child, clock);
  try {
    const accounts = await deriveAccounts(settings.mnemonic, settings.accounts);
    await waitUntilReady(spec, child, () => rpc("eth_chainId"));
    const mine = async (blocks = 1) => void (await rpc(mineMethod, [`0x${blocks.toString(16)}`]));
    return { url, port, chainId: settings.chainId, accounts, ended: child.ended, rpc, mine, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function launch({ command, args }: ChildSpec): Child {
  // A process group of its own: Ctrl-C reaches us alone, and we end it when the node has drained.
  const child = spawn(command, args, { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const dismiss = child.pid === undefined ? () => undefined : guardChild(child.pid, "TERM");
  const ended = new Promise<string>((resolve) => {
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr = (stderr + chunk).slice(-LAST_WORDS_CHARACTERS);
    });
    child.on("error", (error) => resolve(systemCode(error) === "ENOENT" ? "ENOENT" : error.message));
    child.on("close", (code, signal) => {
      dismiss();
      resolve(lastWords(stderr) ?? (code === null ? `signal ${signal}` : `exit code ${code}`));
    });
  });
  return { handle: child, ended };
}

/** Rust says where it panicked in one line, why in the next, and then how to learn more. */
function lastWords(stderr: string): string | null {
  const lines = stderr.trim().split("\n");
  const panicked = lines.findLastIndex((line) => line.includes(" panicked at "));
  const words = panicked === -1 ? lines.at(-1) : lines.slice(panicked, panicked + 2).join(" ");
  return words || null;
}

async function waitUntilReady(spec: ChildSpec, child: Child, ask: () => Promise<unknown>): Promise<void> {
  const { clock } = spec;
  const deadlineMs = clock.monotonicMs() + READY_TIMEOUT_MS;
  let problem = "it does not answer";
  while (clock.monotonicMs() < deadlineMs) {
    try {
      await ask();
      return;
    } catch (error) {
      problem = messageOf(error);
    }
    if (await settlesWithin(clock, child.ended, READY_POLL_MS)) throw notStarted(spec, await child.ended);
  }
  throw notStarted(spec, problem);
}

function notStarted({ name, notInstalled }: ChildSpec, problem: string): EmbeddedError {
  if (problem === "ENOENT") return new EmbeddedError("NOT_INSTALLED", notInstalled);
  return new EmbeddedError("START_FAILED", `${name} did not start: ${problem}`);
}

async function end({ handle, ended }: Child, clock: Clock): Promise<void> {
  handle.kill("SIGTERM");
  if (await settlesWithin(clock, ended, STOP_MS)) return;
  handle.kill("SIGKILL");
  await ended;
}

async function post(url: string, request: unknown): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  return (await response.json()) as Answer;
}
