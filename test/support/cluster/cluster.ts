/**
 * Several nodes on one database and one chain. Each node is connected through separate proxies, which a test can cut.
 */
import { createHash } from "node:crypto";
import { privateKeyToAddress } from "viem/accounts";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import type { SimulatedServer } from "../../doubles/simulated-chain/server.ts";
import { type Database, it as integration } from "../integration.ts";
import {
  type FencepostProcess,
  type NodeProcess,
  nodeOnceReady,
  type Stroke,
  spawnNode,
  spawnStruckNode,
  type Variables,
} from "../node-process.ts";
import { parseExposition } from "../prometheus-text.ts";
import { TcpProxy } from "../tcp-proxy.ts";
import { waitUntil } from "../wait-until.ts";
import { ChainWire } from "./chain-wire.ts";
import { layTripwires } from "./tripwires.ts";

export interface ClusterNode extends NodeProcess {
  readonly chainWire: ChainWire;
  readonly databaseWire: TcpProxy;
}

export interface NodeOptions {
  readonly variables?: Variables;
  readonly strike?: Stroke;
}

/** Which node owns each signer's lane, for lanes whose owner's lease has not expired. */
export type Owners = ReadonlyMap<string, string>;

const KEYS: readonly Hex[] = Array.from(
  { length: 20 },
  (_, index): Hex => `0x${createHash("sha256").update(`cluster ${index}`).digest("hex")}`,
);
export const SIGNERS: readonly Address[] = KEYS.map((key) => privateKeyToAddress(key).toLowerCase() as Address);

/** The environment variable that gives a node the keys of these signers. */
export function keysOf(signers: readonly Address[]): Variables {
  return { FENCEPOST_PRIVATE_KEYS: signers.map((signer) => KEYS[SIGNERS.indexOf(signer)]).join(",") };
}

/** A lease short enough for a test to wait until it expires. */
export const LEASE_MS = 3_000;
export const SKEW_MS = 300;

const SETTINGS: Variables = {
  FENCEPOST_PORT: "0",
  FENCEPOST_AUTH: "none",
  FENCEPOST_LOG_LEVEL: "warn",
  FENCEPOST_POLL_INTERVAL: "100ms",
  FENCEPOST_CONFIRMATIONS: "2",
  FENCEPOST_LEASE_DURATION: `${LEASE_MS}ms`,
  FENCEPOST_LEASE_RENEW_INTERVAL: "750ms",
  FENCEPOST_CLOCK_SKEW_ALLOWANCE: `${SKEW_MS}ms`,
  FENCEPOST_IN_FLIGHT_WINDOW: "512",
  ...keysOf(SIGNERS),
};

export class Cluster {
  readonly database: Database;
  readonly chain: SimulatedServer;
  readonly nodes: ClusterNode[] = [];
  private readonly processes: FencepostProcess[] = [];
  private readonly wires: { close(): Promise<void> }[] = [];
  private named = 0;

  constructor(database: Database, chain: SimulatedServer) {
    this.database = database;
    this.chain = chain;
  }

  /** Starts one more node and waits until it is ready. */
  async start({ variables = {}, strike }: NodeOptions = {}): Promise<ClusterNode> {
    const nodeId = `node-${++this.named}`;
    const { database } = this;
    const databaseWire = await TcpProxy.start(Number(new URL(database.url).port));
    const chainWire = await ChainWire.start({ upstreamUrl: this.chain.url, nodeId, database });
    this.wires.push(databaseWire, chainWire);
    const all: Variables = {
      ...SETTINGS,
      FENCEPOST_NODE_ID: nodeId,
      FENCEPOST_DATABASE_URL: databaseWire.through(database.url),
      FENCEPOST_RPC_URL: chainWire.url,
      ...variables,
    };
    const process = strike === undefined ? spawnNode({ variables: all }) : spawnStruckNode(strike, { variables: all });
    this.processes.push(process);
    const node = { ...(await nodeOnceReady(process)), chainWire, databaseWire };
    this.nodes.push(node);
    return node;
  }

  startAll(count: number, options: NodeOptions = {}): Promise<readonly ClusterNode[]> {
    return Promise.all(Array.from({ length: count }, () => this.start(options)));
  }

  async owners(): Promise<Owners> {
    const rows = await this.database.query<{ signer: string; node_id: string }>(
      `SELECT l.signer, n.node_id FROM fencepost.lane l
       JOIN fencepost.node_instance n ON n.instance_id = l.owner_instance
       WHERE NOT n.dead AND n.expires_at > clock_timestamp() ORDER BY l.signer`,
    );
    return new Map(rows.map(({ signer, node_id }) => [signer, node_id]));
  }

  /** Resolves with the owners when every lane is owned and no node has more than its share. */
  async untilSpread(over: readonly ClusterNode[], lanes = SIGNERS.length): Promise<Owners> {
    const share = Math.ceil(lanes / over.length);
    const names = new Set(over.map(({ nodeId }) => nodeId));
    return waitUntil(
      async () => {
        const owners = await this.owners();
        const counts = countByNode(owners);
        const fair = [...counts].every(([nodeId, count]) => names.has(nodeId) && count <= share);
        return owners.size === lanes && fair ? owners : null;
      },
      `${lanes} lanes are spread over ${[...names]}`,
    );
  }

  async close(): Promise<void> {
    for (const process of this.processes) process.signal("SIGKILL");
    await Promise.all(this.processes.map(({ exited }) => exited));
    await Promise.all(this.wires.map((wire) => wire.close()));
  }
}

export function countByNode(owners: Owners): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const nodeId of owners.values()) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  return counts;
}

/** The value of one of the node's metrics, summed over labels. */
export async function metric({ url }: NodeProcess, name: string): Promise<number> {
  const { samples } = parseExposition(await (await fetch(`${url}/metrics`)).text());
  return samples.filter((sample) => sample.name === name).reduce((sum, { value }) => sum + value, 0);
}

/** Number of instances that the node has registered so far. */
export async function instancesOf({ database }: Cluster, { nodeId }: ClusterNode): Promise<number> {
  const rows = await database.query("SELECT 1 FROM fencepost.node_instance WHERE node_id = $1", [nodeId]);
  return rows.length;
}

export const it = integration.extend<{ readonly cluster: Cluster }>({
  cluster: async ({ database, simulated, onTestFailed }, use) => {
    await layTripwires(database);
    const cluster = new Cluster(database, simulated);
    onTestFailed(() => {
      for (const node of cluster.nodes) process.stderr.write(`${node.nodeId}:\n${node.stderr()}\n`);
    });
    await use(cluster);
    await cluster.close();
  },
});
