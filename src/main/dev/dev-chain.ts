import { fileURLToPath } from "node:url";
import type { Clock } from "../../ports/clock.ts";
import { startChildChain } from "./embedded/chain/child.ts";
import { freePort } from "./embedded/loopback-port.ts";
import { type ChainOptions, chainSettings, type DevChain } from "./embedded/start-chain.ts";

/** As it is built. */
const MAIN = fileURLToPath(new URL("./dev-chain-main.ts", import.meta.url)).replace(/\.ts$/, ".js");

/** The embedded chain outside this process: a contract can make EDR panic, which ends the process that EDR runs in. */
export async function startDevChain({
  clock,
  ...options
}: ChainOptions & { readonly clock: Clock }): Promise<DevChain> {
  const port = options.port ?? (await freePort());
  return startChildChain({
    name: "the embedded chain",
    command: process.execPath,
    args: [MAIN, JSON.stringify({ ...options, port })],
    port,
    settings: chainSettings(options),
    mineMethod: "hardhat_mine",
    notInstalled: `there is no ${process.execPath} any more: install Node again`,
    clock,
  });
}
