import type { Clock } from "../../../ports/clock.ts";
import { startChildChain } from "./chain/child.ts";
import { assertPortFree, freePort, LOOPBACK } from "./loopback-port.ts";
import { type ChainOptions, type ChainSettings, chainSettings, type DevChain } from "./start-chain.ts";

export type AnvilOptions = ChainOptions & {
  readonly clock: Clock;
  /** Looked up on PATH; another name or a path where several are installed. */
  readonly command?: string | undefined;
};

/** Foundry's anvil, where it is installed, instead of the embedded chain. */
export async function startAnvil(options: AnvilOptions): Promise<DevChain> {
  const settings = chainSettings(options);
  if (options.port !== undefined) await assertPortFree(options.port);
  const port = options.port ?? (await freePort());
  return startChildChain({
    name: "anvil",
    command: options.command ?? "anvil",
    args: commandLine(settings, port),
    port,
    settings,
    mineMethod: "anvil_mine",
    notInstalled: "anvil is not on PATH: install Foundry (https://getfoundry.sh), or use the embedded chain",
    clock: options.clock,
  });
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
