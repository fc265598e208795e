/** Nodes in processes of their own on one database and one chain, for `demo`, `bench` and `chaos`. */
import { systemClock } from "../../../adapters/system/clock.ts";
import { assertInstalled } from "../embedded/needed-packages.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../embedded/postgres.ts";
import { type DevChain, startEmbeddedChain } from "../embedded/start-chain.ts";
import { type NodeChild, startNodeChild } from "./node-child.ts";

export type EmbeddedCluster = Awaited<ReturnType<typeof startCluster>>;

export interface ClusterPlan {
  readonly nodes: number;
  /** Directory of the database. */
  readonly directory: string;
  /** Clean-up steps, the last one first. */
  readonly undo: (() => Promise<unknown>)[];
  readonly signal: AbortSignal;
}

const SIGNERS = 6;
export const LEASE_MS = 4_000;
const BLOCK_MS = 200;

/** An interruption stops every started part, the last one first. */
export async function startCluster({ nodes: count, directory, undo, signal }: ClusterPlan) {
  assertInstalled({ who: "this command", parts: ["database", "chain"], instead: {} });
  const embedded = { directory, clock: systemClock, log: () => undefined };
  const postgres = await startEmbeddedPostgres(embedded);
  undo.unshift(() => postgres.stop());
  const chain = await startEmbeddedChain({ blockTimeMs: BLOCK_MS });
  undo.unshift(() => chain.stop());
  const nodes: NodeChild[] = [];
  const started: Promise<NodeChild>[] = [];
  // Waits for nodes that are still starting: nobody else would stop them.
  undo.unshift(async () => {
    const known = (await Promise.allSettled(started)).flatMap((each) =>
      each.status === "fulfilled" ? [each.value] : [],
    );
    await Promise.all(known.filter((node) => node.alive()).map((node) => node.stop()));
  });
  const start = (n: number): Promise<NodeChild> => {
    const starting = startNodeChild(`node-${n}`, variables(n, postgres, chain), directory);
    started.push(starting);
    return starting;
  };
  for (let n = 1; n <= count && !signal.aborted; n++) nodes.push(await start(n));
  const signers = chain.accounts.slice(0, SIGNERS).map(({ address }) => address);
  /** Starts a node in place of an ended one. */
  const restart = async (index: number): Promise<void> => {
    nodes[index] = await start(index + 1);
  };
  return { chain, nodes, signers, restart };
}

function variables(n: number, postgres: EmbeddedPostgres, chain: DevChain): Readonly<Record<string, string>> {
  return {
    FENCEPOST_DATABASE_URL: postgres.url,
    FENCEPOST_RPC_URL: chain.url,
    FENCEPOST_PRIVATE_KEYS: chain.accounts
      .slice(0, SIGNERS)
      .map(({ privateKey }) => privateKey)
      .join(","),
    FENCEPOST_AUTH: "none",
    FENCEPOST_PORT: "0",
    FENCEPOST_NODE_ID: `node-${n}`,
    FENCEPOST_CONFIRMATIONS: "2",
    FENCEPOST_POLL_INTERVAL: "200ms",
    FENCEPOST_LEASE_DURATION: `${LEASE_MS}ms`,
    FENCEPOST_LEASE_RENEW_INTERVAL: "1s",
    FENCEPOST_CLOCK_SKEW_ALLOWANCE: "500ms",
    FENCEPOST_DRAIN_TIMEOUT: "1s",
    FENCEPOST_LOG_LEVEL: "error",
  };
}
