import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { type BenchChain, startChain } from "./chain.ts";
import { type Databases, query, startDatabases } from "./databases.ts";
import { type NodeProcess, startNode } from "./node-process.ts";
import { processorMs, type Spent } from "./processor-time.ts";
import { type BenchSigner, makeSigners } from "./signers.ts";

/** A node with a database and a chain of its own. */
export interface Setup {
  readonly node: NodeProcess;
  /** All of them, where there are several; each holds its share of the lanes. */
  readonly nodes: readonly NodeProcess[];
  readonly chain: BenchChain;
  readonly databaseUrl: string;
  readonly signers: readonly BenchSigner[];
  /** Processor time so far of the first node with its signing process, and of PostgreSQL with its sessions. */
  processor(): Promise<Spent>;
  close(): Promise<void>;
}

export interface SetupOptions {
  readonly signers?: number;
  /** Creates are accepted and wait; nothing is signed or sent. */
  readonly suspended?: boolean;
  /** The database has its tables before the node starts, as at every start but the first. */
  readonly migrated?: boolean;
  readonly nodes?: number;
  /** Unless said otherwise, the 50 ms of a chain that holds nobody up. */
  readonly blockTimeMs?: number;
  /** Program that is started instead of the build's launcher. */
  readonly launcher?: string;
  /** Settings of the node, over those of every measure. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** What every measure stands on: one PostgreSQL, and set-ups that are made and thrown away. */
export interface Workbench {
  readonly databases: Databases;
  /** `bin/fencepost.js` of the build that is measured. */
  readonly launcher: string;
  open(options?: SetupOptions): Promise<Setup>;
  close(): Promise<void>;
}

const CHAIN_ID = 31_337;

/** 50 ms blocks, window 512. One confirmation, and a poll for each block. */
const NODE_ENVIRONMENT = {
  FENCEPOST_POLL_INTERVAL: "50ms",
  FENCEPOST_CONFIRMATIONS: "1",
  FENCEPOST_IN_FLIGHT_WINDOW: "512",
};

export interface WorkbenchOptions {
  readonly profileTo: string | null;
  /** `bin/fencepost.js` of the build that is measured. */
  readonly launcher: string;
}

export async function openWorkbench({ profileTo, launcher }: WorkbenchOptions): Promise<Workbench> {
  const directory = await mkdtemp(join(tmpdir(), "fencepost-bench-"));
  // Under root the server runs as somebody else, who must be able to pass through.
  await chmod(directory, 0o755);
  const databases = await startDatabases(directory);
  return {
    databases,
    launcher,
    open: (options = {}) => openSetup({ databases, directory, profileTo, launcher }, options),
    close: async () => {
      await databases.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function openSetup(
  { databases, directory, profileTo, launcher }: WorkbenchOptions & { databases: Databases; directory: string },
  options: SetupOptions,
): Promise<Setup> {
  const { signers: count = 1, suspended = false, nodes: nodeCount = 1, environment: settings = {} } = options;
  const signers = makeSigners(count);
  const [databaseUrl, chain] = await Promise.all([databases.create(), startChain(options.blockTimeMs ?? 50)]);
  const environment = {
    ...NODE_ENVIRONMENT,
    FENCEPOST_DATABASE_URL: databaseUrl,
    FENCEPOST_RPC_URL: chain.url,
    ...settings,
  };
  const configFile = join(directory, "fencepost.config.json");
  // A node refuses a file with keys that other users of the machine can read.
  await writeFile(configFile, JSON.stringify({ privateKeys: signers.map(({ privateKey }) => privateKey) }), {
    mode: 0o600,
  });
  const logFile = join(directory, "node.log");
  if (suspended || options.migrated === true) await migrate(launcher, databaseUrl);
  if (suspended) await suspendAll(databaseUrl, signers);
  const nodes: NodeProcess[] = [];
  while (nodes.length < nodeCount)
    nodes.push(
      await startNode({ launcher: options.launcher ?? launcher, environment, configFile, logFile, profileTo }),
    );
  if (nodeCount > 1) await untilSpread(databaseUrl, Math.ceil(count / nodeCount));
  const node = nodes[0] as NodeProcess;
  return {
    node,
    nodes,
    chain,
    databaseUrl,
    signers,
    processor: async () => {
      const [nodeMs, databaseMs] = await Promise.all([processorMs(node.pid), processorMs(databases.pid)]);
      return { nodeMs, databaseMs };
    },
    close: async () => {
      await Promise.all(nodes.map((node) => node.stop()));
      await Promise.all([chain.stop(), databases.drop(databaseUrl)]);
    },
  };
}

const LOOK_AGAIN_MS = 200;

async function untilSpread(databaseUrl: string, share: number): Promise<void> {
  const most = `SELECT coalesce(max(held), 0)::int AS most FROM (
    SELECT count(*) AS held FROM fencepost.lane GROUP BY owner_instance) AS owners`;
  while (((await query<{ most: number }>(databaseUrl, most))[0]?.most ?? 0) > share) await pause(LOOK_AGAIN_MS);
}

async function migrate(launcher: string, databaseUrl: string): Promise<void> {
  const env = { PATH: process.env.PATH, FENCEPOST_DATABASE_URL: databaseUrl };
  await promisify(execFile)(process.execPath, [launcher, "migrate"], { env });
}

async function suspendAll(databaseUrl: string, signers: readonly BenchSigner[]): Promise<void> {
  const rows = signers.map(({ address }) => `(${CHAIN_ID}, '${address}', true, 'OPERATOR')`);
  await query(
    databaseUrl,
    `INSERT INTO fencepost.lane (chain_id, signer, suspended, suspended_by) VALUES ${rows.join(", ")}`,
  );
}
