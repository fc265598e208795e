/** Runs chains in processes of their own. They end with this process, and report when they end. */
import { fileURLToPath } from "node:url";
import { codeOf, messageOf } from "../../../../domain/text/thrown.ts";
import type { Clock } from "../../../../ports/clock.ts";
import { EmbeddedError } from "../embedded-error.ts";
import { assertPortFree, freePort, LOOPBACK } from "../loopback-port.ts";
import { type Child, type Ending, endChild, launch, readyLine, release, settlesWithin } from "../processes.ts";
import { type ChainOptions, type ChainSettings, chainSettings, type DevChain, deriveAccounts } from "../start-chain.ts";
import { ChainRpcError, callChain } from "./json-rpc.ts";

type ChildOptions = ChainOptions & { readonly clock: Clock };
type Ready = Pick<DevChain, "url" | "port" | "chainId" | "accounts">;

const READY_POLL_MS = 50;
const READY_TIMEOUT_MS = 30_000;
const STOP_MS = 5_000;
/** Maximum time between the loss of the connection to a chain and the end of its process. */
const ENDING_MS = 1_000;

function chainIn(child: Child, clock: Clock, ready: Ready, mineMethod: "anvil_mine" | "hardhat_mine"): DevChain {
  const ended = child.ended.then(causeOf);
  const rpc = async (method: string, params: readonly unknown[] = []) => {
    try {
      return await callChain(ready.url, method, params);
    } catch (error) {
      if (error instanceof ChainRpcError || !(await settlesWithin(clock, ended, ENDING_MS))) throw error;
      throw new EmbeddedError("ENDED", `the process of the local chain exited: ${await ended}`, { cause: error });
    }
  };
  const mine = async (blocks = 1) => void (await rpc(mineMethod, [`0x${blocks.toString(16)}`]));
  return { ...ready, ended, rpc, mine, stop: () => endChild(child, clock, [["SIGTERM", STOP_MS]]) };
}

/**
 * Finds the cause of an exit in standard error, as one line. Rust prints where it panicked, then why, then a hint. Node
 * prints the error, its stack, then its version.
 */
export function causeOf({ how, stderr }: Pick<Ending, "how" | "stderr">): string {
  const lines = stderr.trim().split("\n");
  const panicked = lines.findLastIndex((line) => line.includes(" panicked at "));
  if (panicked !== -1) return lines.slice(panicked, panicked + 2).join(" ");
  const thrown = lines.findLast((line) => /^(?:\w+Error|Error)\b.*: /.test(line));
  const messages = lines.filter((line) => !/^(?:Node\.js v\d|\s+at |\s*$)/.test(line));
  return thrown?.replace(/^\w+(?: \[\w+\])?: /, "") ?? messages.at(-1) ?? how;
}

/** Path of the compiled entry file of the chain's process. */
const MAIN = fileURLToPath(new URL("./dev-chain-main.ts", import.meta.url)).replace(/\.ts$/, ".js");

/**
 * Starts the embedded chain in its own process: a contract can make EDR panic, which ends the process that runs EDR.
 */
export async function startDevChain(
  { clock, ...options }: ChildOptions,
  name = "the embedded chain",
): Promise<DevChain> {
  const command = [process.execPath, MAIN, JSON.stringify(options)];
  // A chain with controlled blocks belongs to a test: Node options of the test runner must not apply to the chain's
  // process.
  const env = options.controlled && { env: {} };
  const child = launch(command, { ...env, stdio: ["ignore", "pipe", "pipe"] }, "TERM");
  const ready = await readyLine<Ready>(child, (ending) => notStarted(name, causeOf(ending)));
  // Do not let the chain keep the test process alive: a test may forget to stop it.
  if (options.controlled) release(child);
  return chainIn(child, clock, ready, "hardhat_mine");
}

export type AnvilOptions = ChildOptions & {
  /** Command name of anvil, looked up on PATH, or a path. */
  readonly command?: string | undefined;
};

/** Starts Foundry's anvil instead of the embedded chain. */
export async function startAnvil({ command = "anvil", clock, ...options }: AnvilOptions): Promise<DevChain> {
  if (options.port !== undefined) await assertPortFree(options.port);
  const port = options.port ?? (await freePort());
  const settings = chainSettings(options);
  const ready = {
    url: `http://${LOOPBACK}:${port}`,
    port,
    chainId: settings.chainId,
    accounts: await deriveAccounts(settings),
  };
  const child = launch([command, ...commandLine(settings, port)], { stdio: ["ignore", "ignore", "pipe"] }, "TERM");
  const chain = chainIn(child, clock, ready, "anvil_mine");
  await waitForAnvil(child, clock, ready.url).catch(async (error: unknown) => {
    await chain.stop();
    throw error;
  });
  return chain;
}

async function waitForAnvil({ ended }: Child, clock: Clock, url: string) {
  const deadlineMs = clock.monotonicMs() + READY_TIMEOUT_MS;
  let problem = "it does not answer";
  while (clock.monotonicMs() < deadlineMs) {
    try {
      await callChain(url, "eth_chainId", []);
      return;
    } catch (error) {
      problem = messageOf(error);
    }
    if (!(await settlesWithin(clock, ended, READY_POLL_MS))) continue;
    const ending = await ended;
    if (codeOf(ending.error) === "ENOENT") throw new EmbeddedError("NOT_INSTALLED", ANVIL_MISSING);
    problem = causeOf(ending);
    break;
  }
  throw notStarted("anvil", problem);
}

const ANVIL_MISSING = "anvil is not on PATH: install Foundry (https://getfoundry.sh), or use the embedded chain";

function notStarted(name: string, problem: string) {
  return new EmbeddedError("START_FAILED", `${name} did not start: ${problem}`);
}

function commandLine(settings: ChainSettings, port: number) {
  const { accounts, automine, balanceEther, blockTimeMs, chainId, mnemonic } = settings;
  const mining = blockTimeMs !== null ? ["--block-time", String(blockTimeMs / 1000)] : automine ? [] : ["--no-mining"];
  return [
    ...["--host", LOOPBACK, "--port", String(port), "--chain-id", String(chainId)],
    ...["--mnemonic", mnemonic, "--accounts", String(accounts), "--balance", String(balanceEther)],
    ...mining,
  ];
}
