/** `fencepost/testing`: starts a node, a database and a chain for the duration of a test. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../adapters/system/clock.ts";
import { createClient, type FencepostClient, type FencepostError } from "../../client/index.ts";
import { createMask } from "../../domain/text/mask.ts";
import type { Control } from "../dev/embedded/chain/block-maker.ts";
import { startDevChain } from "../dev/embedded/chain/child.ts";
import { EmbeddedError } from "../dev/embedded/embedded-error.ts";
import { assertInstalled, type Part } from "../dev/embedded/needed-packages.ts";
import { endChild, release } from "../dev/embedded/processes.ts";
import type { DevAccount, DevChain } from "../dev/embedded/start-chain.ts";
import { startNode, type Variables } from "../dev/node-process.ts";
import { ConfigurationError } from "../library/own-errors.ts";
import { createTestDatabase, type TestDatabase } from "./test-databases.ts";

export { type FencepostClient, FencepostError } from "../../client/index.ts";
export type { DevAccount } from "../dev/embedded/start-chain.ts";

/** Controls of a test's chain. */
export interface ChainInHand extends Pick<DevChain, "rpc"> {
  /** Makes blocks now, even if mining is paused. */
  mine(blocks?: number): Promise<void>;
  /**
   * Replaces the last blocks, up to 64, by a branch that is one block longer. The transactions of the replaced blocks
   * are removed from chain and pool.
   */
  reorg(depth: number): Promise<void>;
  /** Stops the block timer. Resolves when the block in progress is made. */
  pauseMining(): Promise<void>;
  /** Starts the block timer again. */
  resumeMining(): Promise<void>;
  /** Sets the base fee of every block from the next one on; null: the chain's own rule again. */
  setBaseFee(wei: bigint | null): Promise<void>;
}

export interface StackOptions {
  /** Number of funded accounts that the node signs for; default 3. */
  readonly signers?: number;
  /** Interval between blocks in ms; default 100. Null: only `chain.mine` makes blocks. */
  readonly blockTimeMs?: number | null;
  /** Blocks on top of a transaction's block until it is CONFIRMED; default 1. */
  readonly confirmations?: number;
  /** Chain id; default 31337. */
  readonly chainId?: number;
  /**
   * URL of a PostgreSQL server of your own, with the right to create databases. Each test stack creates a database
   * there, and drops it at the end.
   */
  readonly databaseUrl?: string;
  /** Pools of signers, each by its index in `signers`: `{ payouts: [0, 1] }`. */
  readonly pools?: Readonly<Record<string, readonly number[]>>;
  /**
   * Settings of the node by their environment variables, such as `{ FENCEPOST_MAX_FEE_GWEI: "100" }`. They override the
   * defaults of the test stack.
   */
  readonly settings?: Variables;
}

export interface Stack {
  /** URL of the node's HTTP API, without a key. */
  readonly url: string;
  /** URL of the chain. */
  readonly rpcUrl: string;
  /** Id of the chain. */
  readonly chainId: number;
  /** Client of the node. */
  readonly client: FencepostClient;
  /** Signers of the node; each has 10,000 ether. */
  readonly signers: readonly [`0x${string}`, ...`0x${string}`[]];
  /** Two more funded accounts that the node has no keys for. */
  readonly strangers: readonly DevAccount[];
  /** URL of the stack's own database. */
  readonly databaseUrl: string;
  /** The chain, with control over its blocks. */
  readonly chain: ChainInHand;
  /** Stops the node and starts another one on the same port. `kill`: true to kill the node as if it had crashed. */
  restartNode(how?: "drain" | "kill"): Promise<void>;
  /** Stops the node and the chain, and drops the database. Safe to call twice. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const STRANGERS = 2;
const MOST_SIGNERS = 500;
const INSTEAD = { database: "give startFencepost the databaseUrl of a server of your own" };

/**
 * Starts a stack (node, database, chain). Any number may run at once, in one process or several: each stack has its own
 * ports, database and chain.
 *
 * @example
 * const stack = await startFencepost();
 * const tx = await stack.client.send({ signer: stack.signers[0], payload: { to, value: 1n } });
 * await tx.final();
 * await stack.stop();
 */
export async function startFencepost(options: StackOptions = {}): Promise<Stack> {
  const { signers = 3, confirmations = 1, blockTimeMs = 100, chainId, databaseUrl } = options;
  const { pools = {}, settings = {} } = options;
  assertPossible({ signers, blockTimeMs, pools });
  const parts: Part[] = databaseUrl === undefined ? ["chain", "database"] : ["chain"];
  const undo = undoStack();
  try {
    assertInstalled({ who: "fencepost/testing", parts, instead: INSTEAD });
    const starting = startDevChain(
      // The chain runs in a process of its own, so that a test's fake timers do not stop its blocks.
      { blockTimeMs, chainId, accounts: signers + STRANGERS, controlled: true, clock: systemClock },
      "the chain of the test",
    );
    const creating = createTestDatabase(databaseUrl);
    // If either the chain or the database fails to start, wait for the start of the other one and then remove it.
    undo.add(() => starting.then((chain) => chain.stop(), ignore));
    undo.add(() => creating.then((database) => database.drop(), ignore));
    const [chain, database] = await Promise.all([starting, creating]);
    const variables = {
      ...variablesOf(chain, database, signers),
      ...poolsOf(pools, chain),
      FENCEPOST_CONFIRMATIONS: `${confirmations}`,
      ...settings,
    };
    return await stackOn(chain, database, { signers, variables, undo });
  } catch (error) {
    await undo.all().catch(ignore);
    throw await startError(error);
  }
}

/** A part that is missing or unusable is a mistake of the set-up; anything else fails as `createFencepost` would. */
async function startError(error: unknown): Promise<FencepostError> {
  const mask = createMask([]);
  if (error instanceof EmbeddedError) return new ConfigurationError("", [mask(error.message)], error);
  const { asStartError } = await import("../library/library-errors.ts");
  return asStartError(error, mask);
}

function wrongOption(path: string, mistake: string) {
  return new ConfigurationError(path, [`${path}: ${mistake}`]);
}

function assertPossible({
  signers,
  blockTimeMs,
  pools,
}: Required<Pick<StackOptions, "signers" | "blockTimeMs" | "pools">>) {
  if (!Number.isInteger(signers) || signers < 1 || signers > MOST_SIGNERS) {
    throw wrongOption("signers", `must be a whole number from 1 to ${MOST_SIGNERS}, not ${signers}`);
  }
  if (blockTimeMs !== null && !(blockTimeMs >= 1)) {
    throw wrongOption("blockTimeMs", `must be at least 1, or null, not ${blockTimeMs}`);
  }
  for (const [name, members] of Object.entries(pools)) {
    const stray = members.find((place) => !Number.isInteger(place) || place < 0 || place >= signers);
    if (stray !== undefined)
      throw wrongOption(`pools.${name}`, `there are signers 0 to ${signers - 1}, and no ${stray}`);
  }
}

interface Parts {
  readonly signers: number;
  readonly variables: Variables;
  readonly undo: ReturnType<typeof undoStack>;
}

async function stackOn(chain: DevChain, database: TestDatabase, { signers, variables, undo }: Parts): Promise<Stack> {
  let node = await startTestNode(variables);
  let restarting: Promise<unknown> = Promise.resolve();
  undo.add(async () => {
    await restarting.catch(ignore);
    await node.stop("drain");
  });
  const { url } = node;
  const restart = async (how: "drain" | "kill") => {
    await node.stop(how);
    node = await startTestNode({ ...variables, FENCEPOST_PORT: new URL(url).port }).catch(async (error: unknown) => {
      throw await startError(error);
    });
  };
  const stop = () => undo.all();
  return {
    url,
    rpcUrl: chain.url,
    chainId: chain.chainId,
    client: createClient({ url }),
    signers: chain.accounts.slice(0, signers).map(({ address }) => address) as [`0x${string}`],
    strangers: chain.accounts.slice(signers),
    databaseUrl: database.url,
    chain: controlsOf(chain),
    restartNode: (how = "drain") => {
      const done = restarting.catch(() => undefined).then(() => restart(how));
      restarting = done;
      return done;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function controlsOf({ rpc }: DevChain): ChainInHand {
  const control = async (name: Control, ...params: readonly unknown[]) => void (await rpc(`fencepost_${name}`, params));
  return {
    mine: (blocks = 1) => control("mine", blocks),
    reorg: (depth) => control("reorg", depth),
    pauseMining: () => control("pause"),
    resumeMining: () => control("resume"),
    setBaseFee: (wei) => control("setBaseFee", wei === null ? null : `0x${wei.toString(16)}`),
    rpc,
  };
}

/** The relative path from src/ and from dist/ to bin/ is the same. */
const LAUNCHER = join(fileURLToPath(new URL("../../../", import.meta.url)), "bin", "fencepost.js");
const DRAIN_MS = 15_000;

/** Starts the node of a test. It ends with this process. */
async function startTestNode(variables: Variables) {
  const { child, url } = await startNode("the node of the test", [LAUNCHER], { variables });
  release(child);
  /** `kill` sends SIGKILL: the node cannot release its lanes, and the next node recovers from the database. */
  const stop = (how: "drain" | "kill") => endChild(child, systemClock, how === "kill" ? [] : [["SIGTERM", DRAIN_MS]]);
  return { url, stop };
}

function variablesOf(chain: DevChain, database: TestDatabase, signers: number): Variables {
  const keys = chain.accounts.slice(0, signers).map(({ privateKey }) => privateKey);
  return {
    FENCEPOST_DATABASE_URL: database.url,
    FENCEPOST_RPC_URL: chain.url,
    FENCEPOST_PRIVATE_KEYS: keys.join(","),
    FENCEPOST_AUTH: "none",
    FENCEPOST_PORT: "0",
    FENCEPOST_POLL_INTERVAL: "50ms",
    // If a reorg removed a transaction, resend it after a second instead of a minute.
    FENCEPOST_RESUBMIT_INTERVAL: "1s",
    // Renew leases often, so that a killed node is noticed sooner; the lease itself stays long, for busy machines.
    FENCEPOST_LEASE_RENEW_INTERVAL: "1s",
    FENCEPOST_DRAIN_TIMEOUT: "1s",
    FENCEPOST_LOG_LEVEL: "warn",
    // Sign in a thread: a signing process takes half a second to start, and tests do not need it.
    FENCEPOST_SIGNING: "thread",
  };
}

function poolsOf(pools: NonNullable<StackOptions["pools"]>, { accounts }: DevChain): Variables {
  const written = Object.entries(pools).map(
    ([name, members]) => `${name}=${members.map((place) => accounts[place]?.address).join("+")}`,
  );
  return written.length === 0 ? {} : { FENCEPOST_POOLS: written.join(",") };
}

type Step = () => Promise<unknown>;

const ignore = () => undefined;

/** Clean-up steps, run once, the last one first. A failure does not stop the rest. */
function undoStack() {
  const steps: Step[] = [];
  let running: Promise<void> | null = null;
  const run = async () => {
    const failures: unknown[] = [];
    for (const step of steps) await step().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  };
  return {
    add: (step: Step) => void steps.unshift(step),
    all: () => {
      running ??= run();
      return running;
    },
  };
}
