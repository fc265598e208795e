import { type ChildProcess, spawn } from "node:child_process";
import type { Clock } from "../../ports/clock.ts";
import { deriveAccounts } from "./chain/accounts.ts";
import { type Answer, resultOf } from "./chain/json-rpc.ts";
import { type ChainOptions, type ChainSettings, chainSettings, type DevChain } from "./chain.ts";
import { EmbeddedError, messageOf, systemCode } from "./errors.ts";
import { guardChild } from "./guard.ts";
import { assertPortFree, freePort, LOOPBACK } from "./loopback-port.ts";
import { settlesWithin } from "./processes.ts";

export interface AnvilOptions extends ChainOptions {
  readonly clock: Clock;
  /** Looked up on PATH; another name or a path for those who keep several. */
  readonly command?: string | undefined;
}

interface Anvil {
  readonly child: ChildProcess;
  /** Resolves when it has ended, with what it said last. */
  readonly ended: Promise<string>;
}

const READY_POLL_MS = 50;
const READY_TIMEOUT_MS = 30_000;
const STOP_MS = 5_000;

/** Foundry's anvil instead of the chain in this process, for those who have it: the same face, a child of ours. */
export async function startAnvil(options: AnvilOptions): Promise<DevChain> {
  const settings = chainSettings(options);
  if (options.port !== undefined) await assertPortFree(options.port);
  const port = options.port ?? (await freePort());
  const url = `http://${LOOPBACK}:${port}`;
  const rpc = async (method: string, params: readonly unknown[] = []) =>
    resultOf(method, await post(url, { jsonrpc: "2.0", id: 1, method, params }));
  const anvil = launch(options.command ?? "anvil", commandLine(settings, port));
  const stop = () => end(anvil, options.clock);
  try {
    const accounts = await deriveAccounts(settings.mnemonic, settings.accounts);
    await waitUntilReady(anvil, () => rpc("eth_chainId"), options.clock);
    const mine = async (blocks = 1) => void (await rpc("anvil_mine", [`0x${blocks.toString(16)}`]));
    return { url, port, chainId: settings.chainId, accounts, rpc, mine, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function commandLine(settings: ChainSettings, port: number): string[] {
  const { accounts, automine, balanceEther, blockTimeMs, chainId, mnemonic } = settings;
  const mining = blockTimeMs !== null ? ["--block-time", String(blockTimeMs / 1000)] : automine ? [] : ["--no-mining"];
  return [
    ...["--host", LOOPBACK, "--port", String(port), "--chain-id", String(chainId)],
    ...["--mnemonic", mnemonic, "--accounts", String(accounts), "--balance", String(balanceEther)],
    ...mining,
  ];
}

function launch(command: string, args: readonly string[]): Anvil {
  // A process group of its own: Ctrl-C reaches us alone, and we end it when the node has drained.
  const child = spawn(command, args, { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const dismiss = child.pid === undefined ? () => undefined : guardChild(child.pid, "TERM");
  const ended = new Promise<string>((resolve) => {
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr = (stderr + chunk).slice(-2_000);
    });
    child.on("error", (error) => resolve(systemCode(error) === "ENOENT" ? "ENOENT" : error.message));
    child.on("close", (code) => {
      dismiss();
      resolve(stderr.trim().split("\n").at(-1) || `exit code ${code}`);
    });
  });
  return { child, ended };
}

async function waitUntilReady(anvil: Anvil, ask: () => Promise<unknown>, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + READY_TIMEOUT_MS;
  let problem = "it does not answer";
  while (clock.monotonicMs() < deadlineMs) {
    try {
      await ask();
      return;
    } catch (error) {
      problem = messageOf(error);
    }
    if (await settlesWithin(clock, anvil.ended, READY_POLL_MS)) throw notStarted(await anvil.ended);
  }
  throw notStarted(problem);
}

function notStarted(problem: string): EmbeddedError {
  if (problem === "ENOENT") {
    return new EmbeddedError(
      "NOT_INSTALLED",
      "anvil is not on PATH: install Foundry (https://getfoundry.sh), or use the embedded chain",
    );
  }
  return new EmbeddedError("START_FAILED", `anvil did not start: ${problem}`);
}

async function end({ child, ended }: Anvil, clock: Clock): Promise<void> {
  child.kill("SIGTERM");
  if (await settlesWithin(clock, ended, STOP_MS)) return;
  child.kill("SIGKILL");
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
