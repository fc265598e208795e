import { defined } from "../../../domain/defined.ts";
import type { Clock } from "../../../ports/clock.ts";
import { controlledBlocks } from "./chain/block-maker.ts";
import { type ChainSettings, createEngine, DEFAULTS, type DevAccount } from "./chain/edr.ts";
import { guardEdr } from "./chain/guard-edr.ts";
import { resultOf } from "./chain/json-rpc.ts";
import { answerLikeNodes } from "./chain/node-dialect.ts";
import { serveRpc } from "./chain/rpc-server.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { LOOPBACK } from "./loopback-port.ts";

export type { ChainSettings, DevAccount } from "./chain/edr.ts";

export interface DevChain {
  readonly url: string;
  readonly port: number;
  readonly chainId: number;
  readonly accounts: readonly DevAccount[];
  /** Resolves when the chain's own process has ended, with its last output. */
  readonly ended?: Promise<string>;
  /** Calls the chain. Rejects with a ChainRpcError if the chain responds with an error. */
  rpc(method: string, params?: readonly unknown[]): Promise<unknown>;
  mine(blocks?: number): Promise<void>;
  stop(): Promise<void>;
}

export type ChainOptions = { readonly [K in keyof ChainSettings]?: ChainSettings[K] | undefined } & {
  /** Port of the chain. If not set, a free port. */
  readonly port?: number | undefined;
  /** True if blocks are made only by the calls and the timer of block-maker.ts. */
  readonly controlled?: boolean | undefined;
};

export function chainSettings(options: ChainOptions): ChainSettings {
  return { ...DEFAULTS, ...defined(options) };
}

/**
 * Starts a real EVM chain in this process, in memory only, behind a JSON-RPC endpoint on the loopback address. `after`:
 * the timer function that schedules blocks if the chain's blocks are controlled.
 */
export async function startEmbeddedChain(
  { port, controlled, ...options }: ChainOptions = {},
  after?: Clock["after"],
): Promise<DevChain> {
  const settings = chainSettings(options);
  const accounts = await deriveAccounts(settings);
  const engine = await createEngine(controlled && after ? { ...settings, blockTimeMs: null } : settings, accounts);
  const handle = answerLikeNodes(guardEdr(engine));
  const stopMining = () => engine("evm_setIntervalMining", [0]);
  const served = controlled && after ? controlledBlocks(handle, settings.blockTimeMs, after) : handle;
  const rpc = async (method: string, params: readonly unknown[] = []) => resultOf(method, await served(method, params));
  const mine = async (blocks = 1) => void (await rpc("hardhat_mine", [`0x${blocks.toString(16)}`]));
  const server = await serveRpc(served, port ?? 0).catch(async (error: unknown) => {
    await stopMining();
    throw error;
  });
  return {
    url: `http://${LOOPBACK}:${server.port}`,
    port: server.port,
    chainId: settings.chainId,
    accounts,
    rpc,
    mine,
    stop: async () => {
      await server.close();
      await stopMining();
    },
  };
}

/** Default derivation path of wallets (BIP-44); the accounts are its children 0, 1, 2, … */
const DERIVATION_PATH = "m/44'/60'/0'/0";

/**
 * Derives the dev accounts. viem's accounts module is imported here, because loading it takes longer than starting the
 * chain.
 */
export async function deriveAccounts({ mnemonic, accounts }: ChainSettings): Promise<readonly DevAccount[]> {
  const { mnemonicToAccount, privateKeyToAddress } = await import("viem/accounts");
  // Derive the seed from the phrase once, not per account: it is slow.
  const parent = mnemonicToAccount(mnemonic, { path: DERIVATION_PATH }).getHdKey();
  return Array.from({ length: accounts }, (_, index) => {
    const key = parent.deriveChild(index).privateKey;
    if (key === null) throw new EmbeddedError("START_FAILED", "the mnemonic yields no private key");
    const privateKey = `0x${Buffer.from(key).toString("hex")}` as const;
    return { address: privateKeyToAddress(privateKey), privateKey };
  });
}
