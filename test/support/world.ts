import type { Tracing } from "../../src/adapters/telemetry/open-tracing.ts";
import type { CreateRequest } from "../../src/application/api.ts";
import { FencepostNode } from "../../src/application/loops/node.ts";
import type { ChainSettings, NodeSettings } from "../../src/application/settings.ts";
import type { FencepostError } from "../../src/domain/errors.ts";
import { type Ceilings, ceilingsOf } from "../../src/domain/fees/ceilings.ts";
import { REPRICING_STRATEGIES } from "../../src/domain/fees/repricing.ts";
import type { Address, Hash, Hex } from "../../src/domain/lane.ts";
import type { Policies } from "../../src/domain/policy/policy.ts";
import { isSettled } from "../../src/domain/transaction/transitions.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Failpoints } from "../../src/ports/failpoints.ts";
import type { Peers } from "../../src/ports/peers.ts";
import type { StuckResolutionHook } from "../../src/ports/stuck-hook.ts";
import type { TelemetryEvent } from "../../src/ports/telemetry.ts";
import { noWakeUps } from "../../src/ports/wake-ups.ts";
import type { WebhookSender } from "../../src/ports/webhook-sender.ts";
import { createManualClock } from "../doubles/manual-clock.ts";
import { MemoryNetwork } from "../doubles/memory-peers.ts";
import { MemorySessionLock } from "../doubles/memory-session-lock.ts";
import { counter, FakeSigner } from "../doubles/memory-signer.ts";
import type { LaneRow, TransactionRow } from "../doubles/memory-store/state.ts";
import { MemoryDatabase, type MemoryStore } from "../doubles/memory-store.ts";
import { MemoryHints, type MemoryWakeUps } from "../doubles/memory-wake-ups.ts";
import { createSeededEntropy } from "../doubles/seeded-entropy.ts";
import { DirectChain, type DirectChainOptions } from "../doubles/simulated-chain/chain-port.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { Faults } from "../doubles/simulated-chain/faults.ts";
import type { SimulatedChainOptions } from "../doubles/simulated-chain/options.ts";
import { ROOMY_POOL } from "../doubles/simulated-chain/pool.ts";
import { senderFromFakeSignature } from "../doubles/simulated-chain/sender.ts";
import { delayed } from "./delayed.ts";
import { createFakeCodec } from "./fake-codec.ts";
import { noSessionLock } from "./no-session-lock.ts";
import { WireWitness } from "./wire-witness.ts";

export const CHAIN_ID = 31_337;
export const BLOCK_MS = 500;
export const POLL_MS = 250;
const LOOK_MS = 10;

export const SIGNERS: readonly Address[] = [1, 2, 3].map((n) => `0x${n.toString(16).padStart(40, "a")}` as Address);
export const SIGNER = SIGNERS[0] as Address;
export const TO = `0x${"b".repeat(40)}` as Address;

export const CHAIN_SETTINGS: ChainSettings = {
  confirmations: 2,
  finality: "confirmations",
  pollIntervalMs: POLL_MS,
  nonceChainQuery: "latest",
  nonceStateTimeoutMs: 30_000,
  staleReceiptTimeoutMs: 60_000,
  receiptWorkers: 10,
  fetchReceiptUponEntry: false,
  broadcastToAll: false,
  resubmitIntervalMs: 60_000,
  publicAfterMs: null,
  repricing: REPRICING_STRATEGIES.on,
  maxAttempts: 0,
  stuckAfterMs: 1_800_000,
  stuckAfterResubmits: 0,
  inFlightWindow: 64,
  blockQueueLength: 1_000,
  maxFeeWei: null,
  maxGasCostWei: null,
  maxCostWei: null,
  maxTransactionGas: null,
  reconciliationIntervalMs: 300_000,
  grayZoneTimeoutMs: 300_000,
  grayZoneIntervalMs: 60_000,
  grayZoneLookback: 100,
  alertLowBalanceWei: null,
  alertPendingDepth: 1_000,
  alertOldestAgeMs: 600_000,
  alertHeadAgeMs: 300_000,
  alertReserved: 100,
  holePolicy: "move",
  expiredReservations: "placeholder",
  maxReservationRepairs: 16,
  maxReservations: 16,
  reservationTtlMs: 60_000,
  explorerUrl: null,
};

export const NODE_SETTINGS: Omit<NodeSettings, "nodeId" | "url"> = {
  version: "0.0.0",
  mode: "worker-queue",
  lease: { durationMs: 10_000, renewIntervalMs: 3_000, clockSkewMs: 1_000 },
  writer: { batchSize: 200, batchTimeoutMs: 2, shards: 256 },
  queueLimit: 10_000,
  drainTimeoutMs: 5_000,
  pools: new Map(),
};

export interface WorldOptions {
  readonly chain?: Partial<SimulatedChainOptions>;
  readonly settings?: Partial<ChainSettings>;
  readonly node?: Partial<NodeSettings>;
  readonly seed?: number;
  readonly signers?: readonly Address[];
  /** True if nodes send each other hints. Off by default, because correctness must not depend on hints. */
  readonly hints?: boolean;
  /**
   * True if each node holds a lock for as long as its database session lasts. If false, as behind a pooler, only the
   * lease shows whether a node is alive.
   */
  readonly sessionLocks?: boolean;
  /** Addresses whose keys the chain node holds. */
  readonly nodeSigners?: readonly Address[];
  /** Policies in the file of every node; the first node writes them to the database. */
  readonly policies?: Policies;
}

export interface WorldNode {
  readonly node: FencepostNode;
  readonly store: MemoryStore;
  readonly faults: Faults;
  readonly events: TelemetryEvent[];
  readonly url: string;
  /** The node's connection for hints; null if hints are off. */
  readonly wakeUps: MemoryWakeUps | null;
  /** The node's session lock; null if the node has no lasting database session. */
  readonly lock: MemorySessionLock | null;
  readonly signer: FakeSigner;
  readonly peers: Peers;
  /** The node's chain port; a test may put another chain behind it. */
  readonly rpc: DirectChain;
}

export interface NodeOptions {
  readonly failpoint?: Failpoints;
  /** Awaited before and after every call to the database and the chain. */
  readonly latency?: () => Promise<void>;
  readonly elsewhere?: DirectChainOptions["elsewhere"];
  readonly privateEndpoints?: readonly string[];
  /** Awaited before each send. Simulates an endpoint that refuses batches. */
  readonly eachSend?: () => Promise<void>;
  /** Wraps each send that starts on this node. */
  readonly sending?: <T>(node: WorldNode, send: () => T) => T;
  readonly signers?: readonly Address[];
  readonly stuckHook?: StuckResolutionHook;
  /** Sends webhooks for outcomes; if absent, the node delivers none. */
  readonly webhooks?: WebhookSender;
  /** Called at each event of the node, at the moment in which it happens. */
  readonly onEvent?: (event: TelemetryEvent) => void;
  readonly tracing?: Pick<Tracing, "tracer" | "sink">;
  /** Chain settings in which this node differs from the others. */
  readonly settings?: Partial<ChainSettings>;
  readonly node?: Partial<NodeSettings>;
  /** The node is embedded in another process: it has no URL and cannot receive requests. */
  readonly embedded?: true;
  /** Policies in a file that only this node has. */
  readonly policies?: Policies;
  /** How far the machine's wall clock is ahead of the database's, in ms; a function if that changes. */
  readonly aheadMs?: number | (() => number);
}

function aheadBy(aheadMs: number | (() => number), clock: Clock): Clock {
  if (aheadMs === 0) return clock;
  const ms = typeof aheadMs === "number" ? () => aheadMs : aheadMs;
  return Object.create(clock, { now: { value: () => new Date(clock.now().getTime() + ms()) } });
}

/**
 * The whole application on test doubles: one database, one chain, any number of nodes, and one clock that the test
 * controls. No sockets and no real time: the same seed gives the same run.
 */
export class World {
  readonly clock = createManualClock();
  readonly database = new MemoryDatabase(this.clock);
  readonly chain: SimulatedChain;
  readonly network = new MemoryNetwork(this.clock);
  private readonly hints = new MemoryHints();
  /** A counter shared by all signers, so that no two signatures are equal, not even of the same transaction. */
  private readonly draw = counter();
  readonly nodes: WorldNode[] = [];
  /** Called for every event of every node. */
  onEvent: (nodeId: string, event: TelemetryEvent) => void = () => undefined;
  readonly wire: WireWitness;
  /** Cost ceilings and chain settings for every node that has none of its own. */
  readonly ceilings: Ceilings;
  readonly settings: ChainSettings;
  /** Transactions that callers sent directly to the chain, not through a node, by hash. */
  readonly hidden = new Map<Hash, { readonly signer: Address; readonly nonce: number }>();
  /** Addresses whose keys the chain node holds. */
  readonly nodeSigners: readonly Address[];
  /** The other signers. */
  readonly ownSigners: readonly Address[];
  private readonly options: WorldOptions;
  private mining = true;

  constructor(options: WorldOptions = {}) {
    this.options = options;
    this.nodeSigners = options.nodeSigners ?? [];
    this.ownSigners = SIGNERS.filter((signer) => !this.nodeSigners.includes(signer));
    this.settings = { ...CHAIN_SETTINGS, ...options.settings };
    this.ceilings = ceilingsOf(CHAIN_ID, this.settings);
    this.chain = new SimulatedChain({
      chainId: CHAIN_ID,
      recoverSender: senderFromFakeSignature,
      pool: ROOMY_POOL,
      ...options.chain,
    });
    this.wire = new WireWitness(this.chain, this.database.state, (hash) => this.hidden.has(hash));
    this.chain.mine(3);
    this.scheduleBlock();
  }

  async startNode(options: NodeOptions = {}): Promise<WorldNode> {
    const entry = this.addNode(options);
    await this.settle(entry.node.start());
    return entry;
  }

  /** Adds a node without starting it, for tests that advance time themselves. */
  addNode(options: NodeOptions = {}): WorldNode {
    const index = this.nodes.length + 1;
    const { policies = null } = { ...this.options, ...options };
    const store = this.database.connect();
    const faults = new Faults();
    const events: TelemetryEvent[] = [];
    const { elsewhere, latency } = options;
    const lock = this.options.sessionLocks === true ? new MemorySessionLock(this.database) : null;
    const wakeUps = this.options.hints === true ? this.hints.connect() : null;
    const url = options.embedded === true ? "" : `http://node-${index}`;
    const second = elsewhere === undefined ? {} : { elsewhere };
    const { eachSend, sending, privateEndpoints = [] } = options;
    const chain = new DirectChain(this.chain, {
      ...{ faults, proves: true, privateEndpoints, ...second },
      ...(eachSend === undefined ? {} : { eachSend }),
      ...(sending === undefined ? {} : { sending: (send) => sending(entry, send) }),
    });
    const { nodeSigners } = this;
    const signer = new FakeSigner(
      options.signers ?? this.options.signers ?? SIGNERS,
      nodeSigners,
      this.draw,
    ).remember();
    this.chain.holdKeys(...nodeSigners);
    const peers = this.network.connect();
    const node = new FencepostNode(
      {
        store: latency === undefined ? store : delayed(store, latency),
        chains: [
          {
            chain: latency === undefined ? chain : delayed(chain, latency),
            settings: { ...this.settings, ...options.settings },
          },
        ],
        signer,
        peers,
        wakeUps: wakeUps ?? noWakeUps,
        sessionLock: lock ?? noSessionLock,
        codec: createFakeCodec(),
        clock: aheadBy(options.aheadMs ?? 0, this.clock),
        secrets: { make: () => ({ secret: "a-secret-of-a-test-world", digest: "5".repeat(64) }) },
        entropy: createSeededEntropy((this.options.seed ?? 1) * 1_000 + index, this.clock),
        telemetry: {
          emit: (event) => {
            events.push(event);
            options.tracing?.sink(event);
            options.onEvent?.(event);
            this.onEvent(`node-${index}`, event);
          },
        },
        ...(options.tracing === undefined ? {} : { tracer: options.tracing.tracer }),
        failpoint: options.failpoint ?? (() => undefined),
        policies,
        ...(options.stuckHook === undefined ? {} : { stuckHook: options.stuckHook }),
        ...(options.webhooks === undefined ? {} : { webhooks: options.webhooks }),
      },
      { ...NODE_SETTINGS, ...this.options.node, ...options.node, nodeId: `node-${index}`, url },
    );
    if (url !== "")
      this.network.join(
        url,
        (creates, repeat) => node.create(creates, { repeat }),
        (lane, request) => node.actions.receive(lane, request),
        (kill) => node.kills.receive(kill),
      );
    const entry: WorldNode = { node, store, faults, events, url, wakeUps, lock, signer, peers, rpc: chain };
    this.nodes.push(entry);
    return entry;
  }

  /** Sends a caller's signed transaction to the chain, past every node, and returns its hash. */
  async sendHidden(rawTransaction: Hex): Promise<Hash> {
    const { txHash, signer, unsigned } = await createFakeCodec().decodeTransaction(rawTransaction);
    this.hidden.set(txHash, { signer, nonce: unsigned.nonce });
    this.wire.duringOthers(() => this.chain.submit(rawTransaction));
    return txHash;
  }

  /**
   * Nonces of mined transactions that callers sent directly to the chain, as far as no transaction of Fencepost has the
   * nonce.
   */
  hiddenNonces(signer: Address): readonly number[] {
    const ours = new Set(this.rows().flatMap((row) => (row.lane.signer === signer ? [row.nonce] : [])));
    const mined = [...this.hidden].filter(
      ([hash, sent]) => sent.signer === signer && this.chain.receipt(hash) !== null,
    );
    return mined.map(([, { nonce }]) => nonce).filter((nonce) => !ours.has(nonce));
  }

  /** Simulates kill −9: from now on nothing that the node sends reaches the database or the chain. */
  crash({ node, store, faults, url, wakeUps, lock }: WorldNode): void {
    this.network.hangUp(url);
    lock?.cut();
    wakeUps?.disconnect();
    store.cut();
    faults.inject({ kind: "unavailable" });
    void node.abandon();
  }

  /** Returns the refusal of a request; fails if it is accepted. */
  refusal(request: Promise<unknown>): Promise<FencepostError> {
    return this.settle(
      request.then(
        () => Promise.reject(new Error("it was accepted")),
        (error: FencepostError) => error,
      ),
    );
  }

  /** Advances time until the promise has settled, and returns its value or throws its error. */
  async settle<T>(promise: Promise<T>, limitMs = 60_000): Promise<T> {
    let done = false;
    const marked = promise.finally(() => {
      done = true;
    });
    marked.catch(() => undefined);
    await this.until(() => done, limitMs);
    return marked;
  }

  /**
   * Advances time until `fact` returns true; fails if the limit is reached. It checks every 10 ms, but skips ahead to
   * the next timer, because nothing happens before that.
   */
  async until(fact: () => boolean, limitMs = 120_000): Promise<void> {
    const deadline = this.clock.monotonicMs() + limitMs;
    let ms = LOOK_MS;
    while (!fact()) {
      const nowMs = this.clock.monotonicMs();
      if (nowMs >= deadline) throw new Error(`not reached within ${limitMs} ms of virtual time`);
      await this.clock.advance(Math.min(ms, deadline - nowMs));
      ms = LOOK_MS * Math.max(1, Math.ceil(((this.clock.nextDueMs ?? deadline) - this.clock.monotonicMs()) / LOOK_MS));
    }
  }

  /** How many creates may be under way on a lane. */
  get queueLimit(): number {
    return this.options.node?.queueLimit ?? NODE_SETTINGS.queueLimit;
  }

  /** Every transaction row, ordered by nonce. */
  rows(): readonly TransactionRow[] {
    return [...this.database.state.transactions.values()].sort((a, b) => (a.nonce ?? -1) - (b.nonce ?? -1));
  }

  /** The node id of the owner of the signer's lane. */
  ownerOf(signer: Address): string | undefined {
    const owner = this.laneOf(signer)?.owner ?? null;
    return owner === null ? undefined : this.database.state.instances.get(owner)?.nodeId;
  }

  /** The fencing token of the signer's lane, which grows with each change of owner. */
  tokenOf(signer: Address): number {
    return this.laneOf(signer)?.token ?? 0;
  }

  private laneOf(signer: Address): LaneRow | undefined {
    return [...this.database.state.lanes.values()].find(({ lane }) => lane.signer === signer);
  }

  async allSettled(count: number, limitMs?: number): Promise<void> {
    const settled = (): number => {
      let settled = 0;
      for (const { state } of this.database.state.transactions.values()) if (isSettled(state)) settled++;
      return settled;
    };
    await this.until(() => settled() >= count, limitMs);
  }

  holdBlocks(): void {
    this.mining = false;
  }

  releaseBlocks(): void {
    this.mining = true;
  }

  async close(): Promise<void> {
    for (const entry of this.nodes) this.crash(entry);
    this.nodes.length = 0;
  }

  private scheduleBlock(): void {
    this.clock.after(BLOCK_MS, () => {
      if (this.mining) this.chain.mine();
      this.scheduleBlock();
    });
  }
}

let serial = 0;

/** A transfer with gas and fees, so that nothing has to be read from the chain. */
export function transfer(
  overrides: Partial<Record<"requestId" | "signer" | "payload" | "metadata" | "validUntil" | "nonce", unknown>> = {},
): CreateRequest {
  return {
    signer: SIGNER,
    payload: { to: TO, value: "1", gas: 21_000, maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" },
    requestId: `request-${++serial}`,
    ...overrides,
  };
}
