import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { isTaken } from "../../domain/chain/answers.ts";
import { type Address, type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { isFinal } from "../../domain/transaction/transitions.ts";
import { ALERT_CODES } from "../../domain/troubles/table.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";
import type { TelemetrySink } from "./telemetry.ts";

/** Gauges of this node that are read when Prometheus scrapes. */
const SOURCED_GAUGES = {
  lanesHeld: ["lease_held", "Lanes this node holds"],
  writerQueueDepth: ["writer_queue_depth", "Writes waiting for the committer"],
  receiptBacklog: ["receipt_backlog", "Transactions whose receipt is due to be fetched"],
  noncesReserved: ["nonce_reserved", "Nonces reserved for callers that sign themselves"],
  pendingDepth: ["held_pending_depth", "Transactions on the lanes of this node that are not final"],
  oldestPendingAgeSeconds: ["held_pending_oldest_age_seconds", "Age of the oldest of them"],
  signersAway: ["signer_away", "Lanes of this node whose signer does not sign"],
  killsInForce: ["kills_in_force", "Kills in force on this node"],
  webhookLag: ["webhook_lag", "Outcomes that the furthest subscriber of this node is behind the feed"],
  webhookOldestSeconds: [
    "webhook_oldest_age_seconds",
    "Age of the oldest outcome that a subscriber of this node does not have",
  ],
} as const;

/** Gauges of the whole database: the same on every node. */
const CLUSTER_GAUGES = {
  pendingDepth: ["pending_depth", "Transactions that are neither final nor STUCK"],
  oldestPendingAgeSeconds: ["pending_oldest_age_seconds", "Age of the oldest transaction that is pending"],
  unownedLanes: ["lanes_unowned", "Lanes with open transactions and no live owner"],
  suspendedLanes: ["lanes_suspended", "Suspended lanes: nothing is sent until they are resumed"],
} as const;

type Reading<T> = T | Promise<T>;

export interface GaugeSources {
  /** Reads the value of a gauge; null if there is nothing to measure. */
  readonly gauge: (name: keyof typeof SOURCED_GAUGES) => Reading<number | null | undefined>;
  readonly cluster: () => Reading<ClusterReading>;
  /** Troubles of subscribers: the same on every node. */
  readonly webhookTroubles: () => readonly WebhookTrouble[];
}

/** Label values are bounded: an operator names the subscribers, and there are at most 500. */
interface WebhookTrouble {
  readonly code: string;
  readonly subscriber: string;
}

/** Gauges of the whole database, over the lanes of all nodes. */
export type ClusterReading = Readonly<Record<keyof typeof CLUSTER_GAUGES, number>> & {
  readonly states: Readonly<Record<string, number>>;
};

interface HttpRequestReport {
  readonly method: string;
  /** Pattern of the route, not the path: a label with ids would have an unlimited number of values. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}

type Type = TelemetryEvent["type"];
type EventOf<T extends Type> = Extract<TelemetryEvent, { readonly type: T }>;

/**
 * Counters of events: name, help, and labels, which are fields of the event. If the event has a `count`, that number is
 * added, else one.
 */
const COUNTED: { readonly [T in Type]?: readonly [name: string, help: string, ...labels: (keyof EventOf<T>)[]] } = {
  "lease.acquire": ["lease_acquire_total", "Attempts to acquire a lane", "result"],
  "lease.fenced": ["lease_fenced_total", "Writes of an ended term, which were not made"],
  "instance.declaredDead": ["instance_declared_dead_total", "Other instances that this node declared dead", "evidence"],
  "writer.busy": ["writer_busy_total", "Commits that found the database busy and were retried"],
  "writer.failed": ["writer_failed_total", "Batches that could not be committed"],
  "create.answered": ["tx_create_total", "Create requests answered", "result"],
  "message.answered": ["signatures_total", "Answered requests for signatures of messages", "result"],
  forward: ["forward_total", "Creates forwarded to the node that owns their lane", "result"],
  "peer.refused": ["peer_refused_total", "Requests between nodes that were refused, or not sent", "reason"],
  "lane.blocked": [
    "head_of_line_blocked_total",
    "Heads of lanes that were not mined in time while others waited behind them",
  ],
  "stuck.resolution": ["stuck_resolution_total", "Decisions of the hook, and of operators", "action", "result"],
  "receipt.checked": ["receipt_check_total", "Receipts asked for", "result"],
  "confirmations.newFork": [
    "confirmations_new_fork_total",
    "Confirmation lists replaced: the chain changed below them",
  ],
  "nonce.allocated": ["nonce_allocated_total", "Nonces bound to transactions"],
  "nonce.recycled": ["nonce_recycled_total", "Holes that are in use again"],
  "lane.reconciled": ["reconcile_total", "Comparisons of a lane with the chain", "result"],
  "gray.zone": ["gray_zone_total", "Outcomes of payloads that a node signed under an unknown hash", "result"],
  "webhook.answered": ["webhook_deliveries_total", "Deliveries of outcomes to receivers, tries included", "result"],
  alert: ["alert_total", "Alerts that were raised", "code"],
};

export type Metrics = ReturnType<typeof createMetrics>;

interface MetricsSettings {
  /**
   * True to report CPU, memory, event loop and GC of the process. Turn it off if the host application reports its own.
   */
  readonly processMetrics?: boolean;
  readonly checksum?: (address: Address) => string;
}

const BATCH_SIZE_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
/** Histogram buckets for response times: from a node on the same machine to a request that times out. */
const ANSWER_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/**
 * Histogram buckets for the time to broadcast: from the latency targets under load (20 ms, 150 ms) to a lane that waits
 * for many blocks of 12 s.
 */
const BROADCAST_SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 12, 30, 60, 300];
/**
 * Histogram buckets for the time to finality: from one block of 250 ms, over 20 confirmations at 2 s (40 s) and at 12 s
 * (4 min), to a finalized tag (13 to 20 min).
 */
const FINALITY_SECONDS = [0.25, 0.5, 1, 2, 4, 8, 15, 30, 45, 60, 120, 240, 300, 600, 900, 1200, 1800, 3600];

/** Creates the metrics with a separate registry, so that two nodes in one process do not share counters. */
export function createMetrics(settings: MetricsSettings = {}) {
  const registry = new Registry();
  if (settings.processMetrics ?? true) collectProcessMetrics(registry);
  const sources: Partial<GaugeSources> = {};
  const instruments = createInstruments(registry);
  createSourcedGauges(registry, sources);
  return {
    sink: createMetricsSink(registry, instruments, settings.checksum ?? ((address) => address)),
    httpRequest: ({ method, route, status, durationMs }: HttpRequestReport) =>
      instruments.httpSeconds.observe({ method, route, status: String(status) }, durationMs / 1000),
    /** Sets the node's identity (id and version) once. */
    introduce: ({ nodeId, version }: { readonly nodeId: string; readonly version: string }) =>
      instruments.info.set({ node_id: nodeId, version }, 1),
    feedStreams: (open: number) => instruments.feedStreams.set(open),
    refused: ({ rule }: { readonly rule: string }) => instruments.refused.inc({ rule }),
    /** Connects the gauges to the running node. If a source fails, its gauge is missing from the scrape. */
    connect: (more: Partial<GaugeSources>) => void Object.assign(sources, more),
    expose: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

/**
 * Event-loop series of prom-client that are removed. These seven need a timer of perf_hooks.monitorEventLoopDelay that
 * fires every 10 ms: a hundred wake-ups a second, 40 % of the cost of an idle node. The timer cannot be removed, so it
 * fires once an hour. `nodejs_eventloop_lag_seconds` is measured by the scrape itself and stays.
 */
const TIMED_SERIES = ["min", "max", "mean", "stddev", "p50", "p90", "p99"];
const HOUR_MS = 3_600_000;

function collectProcessMetrics(registry: Registry) {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: HOUR_MS });
  for (const name of TIMED_SERIES) registry.removeSingleMetric(`nodejs_eventloop_lag_${name}_seconds`);
}

/** Labels of metrics per lane. */
const LANE = ["chain_id", "signer"] as const;
const REQUEST = ["method", "route", "status"] as const;

function namedIn(registry: Registry) {
  return <L extends string>(name: string, help: string, labelNames: readonly L[] = []) => {
    return { name: `fencepost_${name}`, help, labelNames, registers: [registry] };
  };
}

/** Creates the metrics that are not simple counters of one event (COUNTED). */
function createInstruments(registry: Registry) {
  const named = namedIn(registry);
  const counter = <L extends string>(name: string, help: string, ...labels: L[]) =>
    new Counter<L>(named(name, help, labels));
  const gauge = <L extends string>(name: string, help: string, ...labels: L[]) =>
    new Gauge<L>(named(name, help, labels));
  const histogram = <L extends string>(buckets: number[], name: string, help: string, ...labels: L[]) =>
    new Histogram<L>({ ...named(name, help, labels), buckets });
  return {
    batchSize: histogram(BATCH_SIZE_BUCKETS, "writer_batch_size", "Items per committed batch"),
    refused: counter("refused_total", "Requests, and items of batches, that a key may not make", "rule"),
    submit: counter("tx_submit_total", "Answers of nodes to submissions, first and repeated", "result"),
    resubmit: counter("resubmit_total", "Answers of nodes to repeated submissions", "result"),
    stuck: counter("stuck_total", "Transactions reported as STUCK"),
    nonceDrift: gauge("nonce_drift", "Mined count of the chain minus the lane's cursor, while it is above", ...LANE),
    signerBalance: gauge(
      "signer_balance_wei",
      "Balance of a signer at the last comparison of its lane with the chain",
      ...LANE,
    ),
    rpcEndpointUp: gauge("rpc_endpoint_up", "1: the endpoint is used, 0: skipped", "chain_id", "endpoint"),
    rpcRequests: counter("rpc_requests_total", "JSON-RPC requests", "method", "result"),
    rpcSeconds: histogram(ANSWER_SECONDS, "rpc_duration_seconds", "Duration of JSON-RPC requests", "method"),
    httpSeconds: histogram(ANSWER_SECONDS, "http_request_duration_seconds", "Duration of HTTP requests", ...REQUEST),
    feedStreams: gauge("feed_streams", "Open streams of outcomes"),
    timeToBroadcast: histogram(
      BROADCAST_SECONDS,
      "time_to_broadcast_seconds",
      "From create to the first node that accepted it",
    ),
    timeToFinality: histogram(FINALITY_SECONDS, "time_to_finality_seconds", "From create to a final state"),
    outcome: counter("tx_outcome_total", "Final states that were entered", "state", "sub_state"),
    chainHead: gauge("chain_head_block", "Height of the chain as this node follows it", "chain_id"),
    chainUp: gauge("chain_up", "1: an endpoint of the chain answers, 0: none does", "chain_id"),
    flushSeconds: histogram(ANSWER_SECONDS, "writer_flush_seconds", "Duration of commits of batches"),
    departed: counter("retention_removed_total", "Rows deleted because they are older than the retention", "what"),
    oldestKept: gauge("retention_oldest_completion_seconds", "Age of the oldest completion that the feed has"),
    info: gauge("node_info", "1, with what this node is", "node_id", "version"),
  };
}

function createSourcedGauges(registry: Registry, sources: Partial<GaugeSources>) {
  const named = namedIn(registry);
  const readGauge = ([name, help]: readonly [string, string], read: () => Reading<number | null | undefined>) =>
    new Gauge({
      ...named(name, help),
      async collect() {
        const value = await attempt(read);
        if (value === undefined) this.remove();
        else this.set(value ?? 0);
      },
    });
  for (const [source, text] of Object.entries(SOURCED_GAUGES))
    readGauge(text, () => sources.gauge?.(source as keyof typeof SOURCED_GAUGES));
  for (const [source, text] of Object.entries(CLUSTER_GAUGES))
    readGauge(text, async () => (await sources.cluster?.())?.[source as keyof typeof CLUSTER_GAUGES]);
  readGauge(["database_up", "1: the database answered a read, 0: it did not"], async () => {
    if (sources.cluster === undefined) return undefined;
    return (await attempt(sources.cluster)) === undefined ? 0 : 1;
  });
  new Gauge({
    ...named("webhook_trouble", "1 while a subscriber has this trouble", ["code", "subscriber"]),
    collect() {
      this.reset();
      for (const { code, subscriber } of sources.webhookTroubles?.() ?? []) this.set({ code, subscriber }, 1);
    },
  });
  new Gauge({
    ...named("tx_state", "Transactions by state, of all time", ["state"]),
    async collect() {
      this.reset();
      const reading = await attempt(() => sources.cluster?.());
      for (const [state, count] of Object.entries(reading?.states ?? {})) this.set({ state }, count);
    },
  });
}

/**
 * Reads the source of a gauge. If it fails, the gauge must be missing, not zero: at zero an alert on it would never
 * fire.
 */
async function attempt<T>(read: () => Reading<T>) {
  try {
    return await read();
  } catch {
    return undefined;
  }
}

/**
 * Largest number of RPC methods with their own label; further ones share one label, because names from outside must not
 * grow the registry without limit.
 */
const METHOD_LABELS = 64;

type Instruments = ReturnType<typeof createInstruments>;
type Measuring = { readonly [T in Type]?: (event: EventOf<T>) => void };
type Spell = (address: Address) => string;

/** Makes the sink that updates metrics from telemetry events; events without a metric are ignored. */
function createMetricsSink(registry: Registry, instruments: Instruments, checksum: Spell): TelemetrySink {
  const count = createCounters(registry);
  const methods = new Set<string>();
  const drift = createDriftGauge(instruments, checksum);
  const setChainUp = (chainId: number, up: 0 | 1) => instruments.chainUp.set({ chain_id: String(chainId) }, up);
  const measuring: Measuring = {
    "tx.transition": ({ event, from, state, subState, ageMs }) => {
      if (ageMs !== undefined) instruments.timeToFinality.observe(ageMs / 1000);
      if (event === "stick") instruments.stuck.inc();
      if (isFinal(state) && from !== state) instruments.outcome.inc({ state, sub_state: subState ?? "" });
    },
    "lane.stopped": ({ lane }) => {
      drift.forget(lane);
      instruments.signerBalance.remove(labelsOf(lane, checksum));
    },
    "chain.head": ({ chainId, number }) => {
      instruments.chainHead.set({ chain_id: String(chainId) }, number);
      setChainUp(chainId, 1);
    },
    "chain.unreachable": ({ chainId }) => setChainUp(chainId, 0),
    "chain.reachable": ({ chainId }) => setChainUp(chainId, 1),
    "submit.answered": ({ answer: result, first, sinceCreatedMs }) => {
      instruments.submit.inc({ result });
      if (!first) instruments.resubmit.inc({ result });
      else if (isTaken(result) && sinceCreatedMs !== null) instruments.timeToBroadcast.observe(sinceCreatedMs / 1000);
    },
    "rpc.request": ({ method: asked, result, calls, durationMs }) => {
      if (methods.size < METHOD_LABELS) methods.add(asked);
      const method = methods.has(asked) ? asked : "other";
      instruments.rpcRequests.inc({ method, result }, calls);
      instruments.rpcSeconds.observe({ method }, durationMs / 1000);
    },
    "rpc.endpoint": ({ chainId, endpoint, state }) => {
      const labels = { chain_id: String(chainId), endpoint: String(endpoint + 1) };
      instruments.rpcEndpointUp.set(labels, state === "up" ? 1 : 0);
    },
    "writer.flushed": ({ items, durationMs }) => {
      instruments.batchSize.observe(items);
      instruments.flushSeconds.observe(durationMs / 1000);
    },
    "nonce.allocated": ({ lane }) => drift.over(laneKey(lane)),
    "signer.balance": ({ lane, balance }) => instruments.signerBalance.set(labelsOf(lane, checksum), Number(balance)),
    "nonce.drift": drift.seen,
    "retention.round": ({ transactions, completions, requestIds, oldestAgeMs }) => {
      instruments.departed.inc({ what: "transaction" }, transactions);
      instruments.departed.inc({ what: "completion" }, completions);
      instruments.departed.inc({ what: "request_id" }, requestIds);
      instruments.oldestKept.set((oldestAgeMs ?? 0) / 1000);
    },
  };
  return (event) => {
    count(event);
    (measuring[event.type] as TelemetrySink | undefined)?.(event);
  };
}

function createCounters(registry: Registry): TelemetrySink {
  const named = namedIn(registry);
  const counters = new Map(
    Object.entries(COUNTED).map(([type, [name, help, ...labels]]) => {
      return [type, { labels, counter: new Counter(named<string>(name, help, labels)) }];
    }),
  );
  // Start each alert counter at zero: Prometheus sees no increase in the first sample of a series.
  for (const code of ALERT_CODES) counters.get("alert")?.counter.inc({ code }, 0);
  return (event) => {
    const counted = counters.get(event.type);
    if (counted === undefined) return;
    const fields: Readonly<Record<string, unknown>> = event;
    const values: Record<string, string> = {};
    for (const label of counted.labels) values[label] = fields[label] as string;
    counted.counter.inc(values, "count" in event ? event.count : 1);
  };
}

/**
 * Gauge of nonce drift per lane: the chain's mined transaction count is above the lane's next nonce. While such a count
 * is not proven, the lane allocates nothing. So drift ends if the count is proven and the next nonce is raised, or if
 * the lane allocates again. Only lanes that drifted have a series, and only on their owner: on a former owner the value
 * would never change again.
 */
function createDriftGauge(instruments: Instruments, checksum: Spell) {
  const open = new Map<LaneKey, { readonly chain_id: string; readonly signer: string }>();
  const over = (key: LaneKey) => {
    const labels = open.get(key);
    if (labels === undefined) return;
    open.delete(key);
    instruments.nonceDrift.set(labels, 0);
  };
  const seen = ({ lane, cursor, chainCount, proved }: EventOf<"nonce.drift">) => {
    if (proved) return over(laneKey(lane));
    const labels = labelsOf(lane, checksum);
    open.set(laneKey(lane), labels);
    instruments.nonceDrift.set(labels, chainCount - cursor);
  };
  const forget = (lane: Lane) => {
    open.delete(laneKey(lane));
    instruments.nonceDrift.remove(labelsOf(lane, checksum));
  };
  return { over, seen, forget };
}

function labelsOf(lane: Lane, checksum: Spell) {
  return { chain_id: String(lane.chainId), signer: checksum(lane.signer) };
}
