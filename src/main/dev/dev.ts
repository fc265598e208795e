import { during } from "../../adapters/cli/answer.ts";
import type { ReadyDevNode } from "../../adapters/cli/present.ts";
import type { Output } from "../../adapters/cli/terminal.ts";
import { dropSchema } from "../../adapters/postgres/schema/migrate.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import type { Logger } from "../../adapters/system/logger.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { type Config, type ConfigFor, keySourcesIn } from "../config/config.ts";
import { startService } from "../service.ts";
import { runUntilStopped } from "../start.ts";
import { listenForStop, type StopSignals } from "../stop-signals.ts";
import { startAnvil, startDevChain } from "./embedded/chain/child.ts";
import { EmbeddedError } from "./embedded/embedded-error.ts";
import { type Asking, needPackages } from "./embedded/needed-packages.ts";
import { startEmbeddedPostgres } from "./embedded/postgres.ts";
import type { DevChain } from "./embedded/start-chain.ts";
import {
  isOnEmbeddedChain,
  type NodeProcess,
  ON_EMBEDDED_CHAIN,
  reportReady,
  startNodeProcess,
  type Variables,
} from "./node-process.ts";
import { type DevTerminal, handleKeys } from "./terminal.ts";

export interface DevRequest extends Pick<Output, "busy"> {
  readonly config: Config;
  readonly logger: Logger;
  readonly chain: "embedded" | "anvil";
  readonly directory: string;
  /** Prints one line of progress. */
  readonly say: (line: string) => void;
  /** Terminal to prompt for installing missing packages, and to read key presses; null if there is none. */
  readonly terminal: DevTerminal | null;
  readonly workingDirectory: string;
}

export type DevReady = Omit<ReadyDevNode, "needsKey">;

type Undo = () => Promise<void>;

const BLOCK_TIME_MS = 500;
/** Maximum number of restarts of a database server that keeps ending. */
const MOST_RESTARTS = 10;

/** `fencepost dev`: a real PostgreSQL, a real EVM chain and a node on them, all children of this process. */
export async function dev(request: DevRequest, ready: (node: DevReady) => void): Promise<void> {
  const { config, logger } = request;
  const stop = listenForStop();
  const undo: Undo[] = [];
  try {
    await needPackages(needsOf(request));
    const database = await during(request, "starting PostgreSQL", () => databaseOf(request, stop, undo));
    stop.signal.throwIfAborted();
    const startChain = () => during(request, "starting the chain", () => embeddedChain(request, undo));
    const chain = config.chains.length > 0 ? null : await startChain();
    stop.signal.throwIfAborted();
    if (chain !== null && config.databaseUrl === null) {
      // The chain of the previous run is gone, so the transactions in the database exist on no chain any more.
      const dropped = await dropSchema({ databaseUrl: database.url, schema: config.databaseSchema });
      if (dropped > 0) request.say(`${dropped} transactions of the last run were dropped: its chain ended with it`);
    }
    const completed = withChain({ ...config, databaseUrl: database.url }, chain);
    const lost = Promise.race([database.lost, chain?.ended?.then(chainLost) ?? NEVER]);
    const { terminal, say } = request;
    const child = terminal === null ? null : replaceableNode(request, nodeVariables(config, database.url, chain));
    const options = { logger, waitUntil: stop.signal, isDev: chain !== null || isOnEmbeddedChain() };
    const starting = child?.start(config.port) ?? startService({ config: completed, ...options });
    const first = await Promise.race([starting, lost.then((error) => Promise.reject(error))]);
    const end = () => child?.stop() ?? first.stop();
    undo.push(end);
    stop.signal.throwIfAborted();
    const { url, adminUrl, nodeId, signers, chainIds } = first;
    const databaseUrl = config.databaseUrl === null ? database.url : null;
    const node = { url, adminUrl, nodeId, chainId: chainIds[0] as number, signers, databaseUrl };
    const over = Promise.race([stop.received, lost.then(() => undefined)]);
    const welcome = () => {
      ready(node);
      reportReady(node);
      if (terminal !== null && child !== null)
        undo.push(handleKeys(terminal, { node, chain, blockTimeMs: BLOCK_TIME_MS, say, restart: child.restart }));
    };
    await runUntilStopped({ ...first, stop: end }, over, { logger, ready: welcome });
    if (!stop.signal.aborted) throw await lost;
  } catch (error) {
    // An interruption while starting is not a failure.
    if (!stop.signal.aborted) throw error;
  } finally {
    for (const step of undo.reverse()) await step();
    stop.dispose();
  }
}

/**
 * Packages of the embedded database and chain. They are not needed if the user has a database or chain of their own.
 */
function needsOf({ config, chain, terminal, say, workingDirectory }: DevRequest): Asking {
  const ownChain = config.chains.length > 0 || chain === "anvil";
  const parts: Asking["parts"] = [
    ...(config.databaseUrl === null ? (["database"] as const) : []),
    ...(ownChain ? [] : (["chain"] as const)),
  ];
  return { who: "fencepost dev", parts, ask: terminal?.ask ?? null, say, directory: workingDirectory };
}

/** The running node process. A key press kills it and starts another one at the same address. */
function replaceableNode({ config, say }: DevRequest, variables: Variables) {
  const options = {
    argv: process.argv.slice(1),
    variables: { ...process.env, ...variables },
    drainTimeoutMs: config.drainTimeoutMs,
    onLost: (how: string) => say(`the node ended (${how}); press k to start another`),
  };
  let current: NodeProcess | null = null;
  const start = async (port: number): Promise<NodeProcess> => {
    current = await startNodeProcess(options, port);
    return current;
  };
  const restart = async () => {
    const killed = current;
    await killed?.kill();
    if (killed !== null) await start(Number(new URL(killed.url).port));
    return killed?.pid;
  };
  return { start, restart, stop: async () => current?.stop() };
}

/** Additional environment variables of the node's process: the database and the chain that `dev` started. */
export function nodeVariables(config: Config, databaseUrl: string, chain: DevChain | null): Variables {
  const keys = (chain?.accounts ?? []).map(({ privateKey }) => privateKey).join(",");
  return {
    ...(config.databaseUrl === null && { FENCEPOST_DATABASE_URL: databaseUrl }),
    ...(chain !== null && {
      FENCEPOST_RPC_URL: chain.url,
      FENCEPOST_CHAIN_ID: `${chain.chainId}`,
      ...ON_EMBEDDED_CHAIN,
    }),
    ...(chain !== null && !hasOwnKeys(config) && { FENCEPOST_PRIVATE_KEYS: keys }),
    // `dev` may run without API keys on its own chain and accounts. Set that explicitly for the child process: it
    // cannot distinguish them from the user's own, and would require keys.
    ...(config.apiKeys === "none" && { FENCEPOST_AUTH: "none" }),
  };
}

const NEVER = new Promise<never>(() => undefined);

/** Error if the chain's process ended. Its blocks were in memory only, so the database would not match a new chain. */
function chainLost(how: string) {
  return new EmbeddedError("ENDED", `the local chain's process exited (${how}); its blocks are lost: start again`);
}

/**
 * The configured database, or an embedded one. If the embedded server is killed, it is restarted and recovers its
 * commits, while the node waits. `lost` resolves if the restart fails.
 */
async function databaseOf(request: DevRequest, stop: StopSignals, undo: Undo[]) {
  const { databaseUrl } = request.config;
  if (databaseUrl !== null) return { url: databaseUrl, lost: NEVER };
  let giveUp: (error: EmbeddedError) => void;
  const lost = new Promise<EmbeddedError>((resolve) => {
    giveUp = resolve;
  });
  let restarts = 0;
  const startAgain = async (how: string) => {
    try {
      if (++restarts > MOST_RESTARTS) throw new Error(`PostgreSQL ended ${restarts} times`);
      request.logger.log("error", {}, `${how}; it is started again`);
      const { port, restart } = await starting;
      await restart("immediate");
      request.say(`PostgreSQL is back on port ${port}`);
    } catch (cause) {
      giveUp(new EmbeddedError("ENDED", `${how}, and is not started again: ${messageOf(cause)}`, { cause }));
    }
  };
  const starting = startEmbeddedPostgres({
    directory: request.directory,
    clock: systemClock,
    log: request.say,
    signal: stop.signal,
    onUnexpectedExit: (how) => void startAgain(how),
  });
  const postgres = await starting;
  undo.push(() => postgres.stop());
  request.say(`PostgreSQL ${postgres.version} on port ${postgres.port}, data in ${postgres.home}`);
  return { url: postgres.url, lost };
}

async function embeddedChain(request: DevRequest, undo: Undo[]) {
  const startChain = request.chain === "anvil" ? startAnvil : startDevChain;
  const chain = await startChain({ blockTimeMs: BLOCK_TIME_MS, clock: systemClock });
  undo.push(() => chain.stop());
  request.say(
    `${request.chain === "anvil" ? "anvil" : "EVM"} chain ${chain.chainId} at ${chain.url}, a block every ${BLOCK_TIME_MS} ms`,
  );
  return chain;
}

/** Adds the dev chain to the configuration, and the chain's accounts if no keys are configured. */
function withChain(config: ConfigFor<"start">, chain: DevChain | null): typeof config {
  if (chain === null) return config;
  const { chainId, url } = chain;
  const signers = hasOwnKeys(config)
    ? config.signers
    : { ...config.signers, privateKeys: chain.accounts.map(({ privateKey }) => privateKey) };
  return {
    ...config,
    signers,
    chains: [{ chainId, rpcUrls: [url], settings: config.chainDefaults, oracle: null, wsUrl: null }],
  };
}

function hasOwnKeys({ signers }: Pick<Config, "signers">) {
  return keySourcesIn(signers).length > 0;
}
