/** Chains in a process of their own. They end with this process, and report when they end. */
import { fileURLToPath } from "node:url";
import { messageOf } from "../../../../domain/text/thrown.ts";
import type { Clock } from "../../../../ports/clock.ts";
import { EmbeddedError, systemCode } from "../embedded-error.ts";
import { assertPortFree, freePort, LOOPBACK } from "../loopback-port.ts";
import { type Ending, endChild, launch, settlesWithin } from "../processes.ts";
import { type ChainOptions, type ChainSettings, chainSettings, type DevChain, deriveAccounts } from "../start-chain.ts";
import { callChain } from "./json-rpc.ts";

interface Kind {
  /** Name in messages. */
  readonly name: string;
  readonly command: readonly string[];
  readonly mineMethod: "anvil_mine" | "hardhat_mine";
  /** Error text if the command does not exist. */
  readonly notInstalled: string;
}

type ChildOptions = ChainOptions & { readonly clock: Clock };

const READY_POLL_MS = 50;
const READY_TIMEOUT_MS = 30_000;
const STOP_MS = 5_000;

async function startChild(kind: Kind, { clock, ...options }: ChildOptions, port: number): Promise<DevChain> {
  const settings = chainSettings(options);
  const url = `http://${LOOPBACK}:${port}`;
  const rpc = (method: string, params: readonly unknown[] = []) => callChain(url, method, params);
  const child = launch(kind.command, { stdio: ["ignore", "ignore", "pipe"] }, "TERM");
  const ended = child.ended.then(causeOf);
  const stop = () => endChild(child, clock, [["SIGTERM", STOP_MS]]);
  try {
    const accounts = await deriveAccounts(settings);
    await waitUntilReady({ ...kind, clock }, child.ended, () => rpc("eth_chainId"));
    const mine = async (blocks = 1) => void (await rpc(kind.mineMethod, [`0x${blocks.toString(16)}`]));
    return { url, port, chainId: settings.chainId, accounts, ended, rpc, mine, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * The cause of an exit, from standard error, in one line. Rust prints where it panicked, then why, then a hint. Node
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

async function waitUntilReady(
  { name, notInstalled, clock }: Kind & Pick<ChildOptions, "clock">,
  ended: Promise<Ending>,
  ask: () => Promise<unknown>,
): Promise<void> {
  const deadlineMs = clock.monotonicMs() + READY_TIMEOUT_MS;
  let problem = "it does not answer";
  while (clock.monotonicMs() < deadlineMs) {
    try {
      await ask();
      return;
    } catch (error) {
      problem = messageOf(error);
    }
    if (!(await settlesWithin(clock, ended, READY_POLL_MS))) continue;
    const ending = await ended;
    if (systemCode(ending.error) === "ENOENT") throw new EmbeddedError("NOT_INSTALLED", notInstalled);
    problem = causeOf(ending);
    break;
  }
  throw new EmbeddedError("START_FAILED", `${name} did not start: ${problem}`);
}

/** The compiled file. */
const MAIN = fileURLToPath(new URL("./dev-chain-main.ts", import.meta.url)).replace(/\.ts$/, ".js");

/** The embedded chain in its own process: a contract can make EDR panic, which ends the process that runs EDR. */
export async function startDevChain({ clock, ...options }: ChildOptions): Promise<DevChain> {
  const port = options.port ?? (await freePort());
  const kind: Kind = {
    name: "the embedded chain",
    command: [process.execPath, MAIN, JSON.stringify({ ...options, port })],
    mineMethod: "hardhat_mine",
    notInstalled: `there is no ${process.execPath} any more: install Node again`,
  };
  return startChild(kind, { ...options, clock }, port);
}

export type AnvilOptions = ChildOptions & {
  /** Command name, looked up on PATH, or a path. */
  readonly command?: string | undefined;
};

/** Foundry's anvil instead of the embedded chain. */
export async function startAnvil({ command = "anvil", ...options }: AnvilOptions): Promise<DevChain> {
  if (options.port !== undefined) await assertPortFree(options.port);
  const port = options.port ?? (await freePort());
  const kind: Kind = {
    name: "anvil",
    command: [command, ...commandLine(chainSettings(options), port)],
    mineMethod: "anvil_mine",
    notInstalled: "anvil is not on PATH: install Foundry (https://getfoundry.sh), or use the embedded chain",
  };
  return startChild(kind, options, port);
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
