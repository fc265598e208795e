/** A cluster of nodes, each in a process of its own, on one database and one chain, for `demo`, `bench` and `chaos`. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../adapters/system/clock.ts";
import { createClient } from "../../../client/index.ts";
import type { Address } from "../../../domain/lane.ts";
import { listenForStop } from "../../stop-signals.ts";
import { assertInstalled } from "../embedded/needed-packages.ts";
import { startEmbeddedPostgres } from "../embedded/postgres.ts";
import { endChild } from "../embedded/processes.ts";
import { type DevAccount, type DevChain, startEmbeddedChain } from "../embedded/start-chain.ts";
import { inherited, startNode, type Variables } from "../node-process.ts";
import type { Progress } from "./progress.ts";

export type EmbeddedCluster = Awaited<ReturnType<typeof startCluster>>;
export type NodeChild = Awaited<ReturnType<typeof startNodeChild>>;

type Undo = (() => Promise<unknown>)[];

const SIGNERS = 6;
export const LEASE_MS = 4_000;
const BLOCK_MS = 200;
const DRAIN_MS = 15_000;

export interface ClusterPlan {
  readonly nodes: number;
  /** True if calls such as `fencepost_reorg` control the blocks of the chain. */
  readonly controlled?: boolean;
  /** Directory of the database's files; a temporary one if not set. */
  readonly databaseIn?: string | undefined;
  /** Returns the program of a node that is about to start, if it is not this one. */
  readonly programOf?: (name: string) => string | undefined;
  /** Returns the variables of each node, by its name, that the other nodes do not have. */
  readonly variablesOf?: (parts: ClusterParts) => Promise<OfNode>;
}

/** Parts of a cluster that run before its first node starts. */
export interface ClusterParts {
  readonly database: string;
  readonly chain: DevChain;
  readonly signers: readonly Address[];
}

type OfNode = (name: string) => Variables;

/** Runs `work` on a cluster in a temporary directory, and removes everything afterwards, also after Ctrl-C. */
export async function withCluster<T>(
  plan: ClusterPlan,
  progress: Pick<Progress, "say" | "phase" | "end">,
  work: (cluster: EmbeddedCluster) => Promise<T>,
): Promise<T> {
  const { nodes } = plan;
  progress.say(`starting PostgreSQL, an EVM chain and ${nodes === 1 ? "a node" : `${nodes} nodes`}`);
  const stop = listenForStop();
  const interrupted = stop.received.then(() => Promise.reject(new Error("interrupted; everything was stopped")));
  const directory = await mkdtemp(join(tmpdir(), "fencepost-demo-"));
  const undo: Undo = [() => rm(directory, { recursive: true, force: true })];
  try {
    const place = { directory, undo, signal: stop.signal, phase: progress.phase };
    return await Promise.race([startCluster(plan, place).then(work), interrupted]);
  } finally {
    progress.phase("stopping everything");
    for (const step of undo) await step().catch(() => undefined);
    stop.dispose();
    progress.end();
  }
}

interface Place {
  /** Directory of the cluster's database. */
  readonly directory: string;
  /** Clean-up steps, run in reverse order. */
  readonly undo: Undo;
  readonly signal: AbortSignal;
  readonly phase: Progress["phase"];
}

/**
 * Starts a cluster. If the start is interrupted, every part that was already started is stopped, the last one first.
 */
async function startCluster(
  { nodes: count, controlled, databaseIn, programOf, variablesOf }: ClusterPlan,
  { directory, undo, signal, phase }: Place,
) {
  assertInstalled({ who: "this command", parts: ["database", "chain"], instead: {} });
  phase("starting PostgreSQL");
  const postgres = await startEmbeddedPostgres({
    ...{ directory: databaseIn ?? directory, clock: systemClock, log: () => undefined },
  });
  undo.unshift(() => postgres.stop());
  phase("starting the chain");
  const chain = await startEmbeddedChain({ blockTimeMs: BLOCK_MS, controlled }, systemClock.after);
  undo.unshift(() => chain.stop());
  const accounts = chain.accounts.slice(0, SIGNERS);
  const signers = accounts.map(({ address }) => address);
  const variables = {
    FENCEPOST_DATABASE_URL: postgres.url,
    FENCEPOST_RPC_URL: chain.url,
    FENCEPOST_PRIVATE_KEYS: accounts.map(({ privateKey }) => privateKey).join(","),
  };
  const ofNode: OfNode = (await variablesOf?.({ database: postgres.url, chain, signers })) ?? (() => ({}));
  const nodes: NodeChild[] = [];
  const started: Promise<NodeChild>[] = [];
  // Wait for nodes that are still starting, so that they can be stopped too: otherwise they would keep running.
  undo.unshift(async () => {
    const known = await Promise.allSettled(started);
    await Promise.all(known.map((each) => each.status === "fulfilled" && each.value.stop()));
  });
  const start = (n: number) => {
    const name = `node-${n}`;
    const program = programOf?.(name) ?? (process.argv[1] as string);
    const starting = startNodeChild(name, { ...variables, ...SETTINGS, ...ofNode(name) }, { directory, program });
    started.push(starting);
    return starting;
  };
  for (let n = 1; n <= count && !signal.aborted; n++) {
    phase(`starting node ${n} of ${count}`);
    nodes.push(await start(n));
  }
  /** Starts a node in place of one that has ended. */
  const restart = async (index: number) => {
    nodes[index] = await start(index + 1);
  };
  const recipient = (chain.accounts.at(-1) as DevAccount).address;
  return { chain, postgres, nodes, accounts, signers, recipient, restart };
}

/**
 * A node in a real process that can be killed and paused. It runs in its own directory, so that it does not read the
 * configuration file of the user's directory.
 */
async function startNodeChild(name: string, variables: Variables, place: { directory: string; program: string }) {
  const { directory, program } = place;
  const launcher = [...inherited(process.execArgv), program];
  const { child, url, nodeId } = await startNode(name, launcher, {
    directory,
    variables: { ...variables, FENCEPOST_NODE_ID: name },
  });
  /** True until the node's process was killed or has ended. */
  const alive = () => child.handle.exitCode === null && child.handle.signalCode === null;
  const signal = (which: NodeJS.Signals) => void child.handle.kill(which);
  return {
    name,
    url,
    nodeId,
    client: createClient({ url, repeat: false }),
    alive,
    signal,
    freezePastLease: async (say: (line: string) => void) => {
      signal("SIGSTOP");
      say(`froze ${name} past its lease (SIGSTOP)`);
      await systemClock.sleep(LEASE_MS + 2_000);
      signal("SIGCONT");
    },
    stop: async () => {
      signal("SIGCONT");
      if (alive()) await endChild(child, systemClock, [["SIGTERM", DRAIN_MS]]);
    },
  };
}

const SETTINGS = {
  FENCEPOST_AUTH: "none",
  FENCEPOST_PORT: "0",
  FENCEPOST_CONFIRMATIONS: "2",
  FENCEPOST_POLL_INTERVAL: "200ms",
  FENCEPOST_LEASE_DURATION: `${LEASE_MS}ms`,
  FENCEPOST_LEASE_RENEW_INTERVAL: "1s",
  FENCEPOST_CLOCK_SKEW_ALLOWANCE: "500ms",
  FENCEPOST_DRAIN_TIMEOUT: "1s",
  FENCEPOST_LOG_LEVEL: "error",
};
