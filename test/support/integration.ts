/**
 * Fixtures of integration tests: a database, a chain, and nodes in separate processes. Each is removed after its test.
 */
import { Pool } from "pg";
import { privateKeyToAddress } from "viem/accounts";
import { test } from "vitest";
import { type DevChain, startEmbeddedChain } from "../../src/main/dev/embedded/start-chain.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { type SimulatedServer, startSimulatedServer } from "../doubles/simulated-chain/server.ts";
import { createTestDatabase } from "./database.ts";
import {
  type FencepostProcess,
  type NodeProcess,
  nodeOnceReady,
  spawnNode,
  spawnStruckNode,
  type Variables,
} from "./node-process.ts";

/** Keys of the first accounts of hardhat and anvil, which are funded on both test chains. */
export const KEYS = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
] as const;
export const [SIGNER, OTHER_SIGNER] = KEYS.map((key) => privateKeyToAddress(key)) as [`0x${string}`, `0x${string}`];
export const SIGNER_KEY = KEYS[0];
export const RECIPIENT: `0x${string}` = "0x00000000000000000000000000000000000000AA";

export const BLOCK_TIME_MS = 50;

/**
 * Settings with which another node takes over a crashed node's lanes within seconds; everything else has its default.
 */
export const SHORT_LEASE: Variables = {
  FENCEPOST_LEASE_DURATION: "3s",
  FENCEPOST_LEASE_RENEW_INTERVAL: "750ms",
  FENCEPOST_CLOCK_SKEW_ALLOWANCE: "300ms",
};

/**
 * Settings of a node for a chain with fast blocks. It needs no API key, and listens on a port that the system chooses.
 */
export const QUICK: Variables = {
  FENCEPOST_PORT: "0",
  FENCEPOST_AUTH: "none",
  FENCEPOST_PRIVATE_KEYS: KEYS.join(","),
  FENCEPOST_POLL_INTERVAL: "100ms",
  FENCEPOST_CONFIRMATIONS: "2",
  FENCEPOST_LOG_LEVEL: "warn",
  // A node starts faster without the signing process, which other tests cover.
  FENCEPOST_SIGNING: "thread",
};

export interface Database {
  readonly url: string;
  query<Row>(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
}

/** Starts nodes on the test's database. */
export interface Nodes {
  /** Starts `fencepost start` on this chain and waits until it is ready. */
  start(rpcUrl: string, variables?: Variables): Promise<NodeProcess>;
  /** Starts a node without waiting, so that a test can watch its start. */
  spawn(rpcUrl: string, variables?: Variables): FencepostProcess;
  /** Starts a node that kills itself when it passes a failpoint for the n-th time. */
  crashing(failpoint: string, rpcUrl: string, variables?: Variables & { readonly passage?: string }): FencepostProcess;
}

interface Fixtures {
  readonly database: Database;
  /** A real EVM with a block every 50 ms. */
  readonly edr: DevChain;
  /**
   * A simulated chain with geth's mempool rules behind HTTP, a block every 50 ms, injectable faults, and a record of
   * every arrival.
   */
  readonly simulated: SimulatedServer;
  readonly nodes: Nodes;
}

export const it = test.extend<Fixtures>({
  database: async ({ task: _ }, use) => {
    const database = await createTestDatabase();
    const connected = connect(database.url);
    await use(connected);
    await connected.end();
    await database.drop();
  },
  edr: async ({ task: _ }, use) => {
    const chain = await startEmbeddedChain({ blockTimeMs: BLOCK_TIME_MS });
    await use(chain);
    await chain.stop();
  },
  simulated: async ({ task: _ }, use) => {
    const server = await startSimulatedServer({ chain: new SimulatedChain(), blockTimeMs: BLOCK_TIME_MS });
    await use(server);
    await server.close();
  },
  nodes: async ({ database }, use) => {
    const nodes = nodesOn(database.url);
    await use(nodes);
    await nodes.killAll();
  },
});

export function connect(url: string): Database & { end(): Promise<void> } {
  const pool = new Pool({ connectionString: url, max: 2 });
  pool.on("error", () => undefined);
  return {
    url,
    query: async <Row>(sql: string, values: readonly unknown[] = []) =>
      (await pool.query(sql, [...values])).rows as Row[],
    end: () => pool.end(),
  };
}

export function nodesOn(databaseUrl: string): Nodes & { killAll(): Promise<void> } {
  const started: FencepostProcess[] = [];
  const keep = (child: FencepostProcess) => {
    started.push(child);
    return child;
  };
  const variablesOf = (rpcUrl: string, variables: Variables) => ({
    variables: { ...QUICK, FENCEPOST_DATABASE_URL: databaseUrl, FENCEPOST_RPC_URL: rpcUrl, ...variables },
  });
  const spawn: Nodes["spawn"] = (rpcUrl, variables = {}) => keep(spawnNode(variablesOf(rpcUrl, variables)));
  return {
    spawn,
    start: (rpcUrl, variables) => nodeOnceReady(spawn(rpcUrl, variables)),
    crashing: (failpoint, rpcUrl, { passage = "1", ...variables } = {}) =>
      keep(
        spawnStruckNode(
          { failpoint, passage: Number(passage), signal: "SIGKILL" },
          variablesOf(rpcUrl, variables as Variables),
        ),
      ),
    async killAll() {
      for (const child of started) child.signal("SIGKILL");
      await Promise.all(started.map((child) => child.exited));
    },
  };
}
