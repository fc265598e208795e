import { readFileSync } from "node:fs";
import perfHooks from "node:perf_hooks";
import { describe, expect, it, vi } from "vitest";
import {
  type ClusterReading,
  createMetrics,
  type GaugeSources,
  type Metrics,
} from "../../../src/adapters/system/metrics.ts";
import { SUBMIT_ANSWERS } from "../../../src/domain/chain/answers.ts";
import { ALERT_CODES } from "../../../src/domain/troubles/table.ts";
import { DELIVERY_RESULTS } from "../../../src/domain/webhooks/receiver-answers.ts";
import type { DeathEvidence } from "../../../src/ports/lease-store.ts";
import type {
  CreateResultLabel,
  GrayZoneResult,
  ReconcileResult,
  StuckResultLabel,
  TelemetryEvent,
} from "../../../src/ports/telemetry.ts";
import { parseExposition, type Sample } from "../../support/prometheus-text.ts";

type Gauges = Partial<Record<Parameters<GaugeSources["gauge"]>[0], () => number | Promise<number>>>;

const lane = { chainId: 1, signer: "0x00000000000000000000000000000000000000aa" } as const;
const other = { chainId: 1, signer: "0x00000000000000000000000000000000000000bb" } as const;
const txHash = "0x1111111111111111111111111111111111111111111111111111111111111111";

/** A record instead of a list, so that the compiler requires an entry for every metric label that the port declares. */
const CREATE_RESULTS: Record<CreateResultLabel, true> = {
  created: true,
  duplicate: true,
  reused: true,
  invalid: true,
  rejected: true,
  queueFull: true,
  unavailable: true,
  notLeader: true,
  unknown: true,
};
type ResultOf<T extends TelemetryEvent["type"]> = Extract<TelemetryEvent, { type: T; result: string }>["result"];
const ACQUIRE_RESULTS: Record<ResultOf<"lease.acquire">, true> = {
  acquired: true,
  kept: true,
  takenOver: true,
  notLeader: true,
};
const EVIDENCE: Record<DeathEvidence, true> = { expired: true, "stood-still": true, "lock-gone": true };
const FORWARD_RESULTS: Record<ResultOf<"forward">, true> = { hit: true, miss: true, failed: true };
const SIGNATURE_RESULTS: Record<ResultOf<"message.answered">, true> = {
  ...{ signed: true, repeated: true, awaiting: true, refused: true, stopped: true },
};
const RECEIPT_RESULTS: Record<ResultOf<"receipt.checked">, true> = { found: true, notFound: true, error: true };
const RPC_RESULTS: Record<ResultOf<"rpc.request">, true> = { ok: true, error: true, unreachable: true };

const keys = <K extends string>(record: Record<K, true>) => Object.keys(record) as K[];

function submission(fields: Partial<Extract<TelemetryEvent, { type: "submit.answered" }>>): TelemetryEvent {
  return {
    type: "submit.answered",
    lane,
    txId: "t",
    nonce: 1,
    txHash,
    answer: "accepted",
    detail: null,
    first: true,
    sinceCreatedMs: 30,
    ...fields,
  };
}

const STUCK_RESULTS: Record<StuckResultLabel, true> = {
  applied: true,
  repeated: true,
  movedOn: true,
  refused: true,
  failed: true,
  limited: true,
};

const RECONCILE_RESULTS: Record<ReconcileResult, true> = {
  agreed: true,
  aligned: true,
  drift: true,
  distrusted: true,
  unavailable: true,
};
const GRAY_ZONE_RESULTS: Record<GrayZoneResult, true> = { entered: true, adopted: true, foreign: true, sentAnew: true };

function everyLabel(): TelemetryEvent[] {
  return [
    ...keys(STUCK_RESULTS).map((result) => ({
      type: "stuck.resolution" as const,
      lane,
      token: 1,
      txId: "t",
      nonce: 1,
      action: "CANCEL" as const,
      result,
      reason: "r",
    })),
    ...keys(CREATE_RESULTS).map((result) => ({ type: "create.answered" as const, result, durationMs: 1 })),
    ...keys(ACQUIRE_RESULTS).map((result) => ({ type: "lease.acquire" as const, lane, result, token: 1 })),
    ...keys(EVIDENCE).map((evidence) => ({ type: "instance.declaredDead" as const, instanceId: "i", evidence })),
    { type: "peer.refused", reason: "sender" },
    { type: "retention.round", keptMs: 1, transactions: 1, completions: 1, requestIds: 1, oldestAgeMs: 1 },
    ...keys(SIGNATURE_RESULTS).map((result) => {
      const what = { signatureId: "s", requestId: "r", owner: null, kind: "personal", rule: null } as const;
      return { type: "message.answered" as const, lane, token: 1, ...what, result };
    }),
    ...keys(FORWARD_RESULTS).map((result) => ({ type: "forward" as const, lane, result, stops: 2 })),
    ...keys(RECEIPT_RESULTS).map((result) => ({ type: "receipt.checked" as const, chainId: 1, result, count: 1 })),
    ...keys(RPC_RESULTS).map((result) => ({
      type: "rpc.request" as const,
      chainId: 1,
      endpoint: 0,
      method: "eth_call",
      result,
      calls: 1,
      durationMs: 1,
    })),
    ...keys(RECONCILE_RESULTS).map((result) => ({ type: "lane.reconciled" as const, lane, result })),
    ...keys(GRAY_ZONE_RESULTS).map((result) => ({ type: "gray.zone" as const, lane, txId: "t", nonce: 1, result })),
    ...DELIVERY_RESULTS.map((result) => ({
      ...({ type: "webhook.answered", subscriber: "books", eventId: "1_1" } as const),
      ...{ result, status: 200, durationMs: 1 },
    })),
    ...SUBMIT_ANSWERS.flatMap((answer) => [submission({ answer }), submission({ answer, first: false })]),
  ];
}

function aReading(states: Record<string, number>): ClusterReading {
  const pendingDepth = states.TRACKING ?? 0;
  return { states, pendingDepth, oldestPendingAgeSeconds: 2.5, unownedLanes: 0, suspendedLanes: 0 };
}

/** Sets every metric whose labels appear only after their first event. */
function everyGauge(metrics: Metrics): void {
  const tx = { type: "tx.transition", lane, txId: "t", nonce: 1, txHash, nodeId: "n", token: 1 } as const;
  metrics.sink({ ...tx, event: "confirm", from: "TRACKING", state: "CONFIRMED", subState: null, ageMs: 1 });
  metrics.sink({ type: "nonce.drift", lane, cursor: 1, chainCount: 2, proved: false });
  metrics.sink({ type: "signer.balance", lane, balance: 1n });
  metrics.sink({ type: "rpc.endpoint", chainId: 1, endpoint: 0, state: "up" });
  metrics.sink({ type: "chain.head", chainId: 1, number: 7, hash: txHash });
  metrics.sink({ type: "alert", severity: "WARNING", code: "LOW_BALANCE", message: "m", lane });
  metrics.httpRequest({ method: "GET", route: "/", status: 200, durationMs: 1 });
  metrics.refused({ rule: "scope:operate" });
  metrics.introduce({ nodeId: "n", version: "1.0.0" });
  const webhookTroubles = () => [{ code: "WEBHOOK_BEHIND", subscriber: "books" }];
  metrics.connect({ gauge: () => 1, cluster: () => aReading({ TRACKING: 1 }), webhookTroubles });
}

async function scrape(metrics: Metrics): Promise<Sample[]> {
  return parseExposition((await metrics.expose()).body).samples;
}

async function value(metrics: Metrics, name: string, labels: Record<string, string> = {}): Promise<number | undefined> {
  const matches = (sample: Sample) =>
    sample.name === `fencepost_${name}` && Object.entries(labels).every(([key, text]) => sample.labels[key] === text);
  return (await scrape(metrics)).find(matches)?.value;
}

describe("metrics", () => {
  it("are exposed in the Prometheus text format, together with Node.js process metrics", async () => {
    const metrics = createMetrics();
    const { contentType, body } = await metrics.expose();
    expect(contentType).toContain("text/plain");
    const { samples, types } = parseExposition(body);
    expect(types.get("fencepost_tx_create_total")).toBe("counter");
    expect(types.get("fencepost_lease_held")).toBe("gauge");
    expect(types.get("fencepost_writer_batch_size")).toBe("histogram");
    expect(samples.some((sample) => sample.name === "process_cpu_seconds_total")).toBe(true);
  });

  // protects [Many lanes] src/adapters/system/metrics.ts
  it("measure event loop lag at the scrape, without a timer that wakes the process", async () => {
    const { types } = parseExposition((await createMetrics().expose()).body);
    expect([...types.keys()].filter((name) => name.includes("eventloop"))).toEqual(["nodejs_eventloop_lag_seconds"]);
    const timer = vi.spyOn(perfHooks, "monitorEventLoopDelay");
    createMetrics();
    expect(timer).toHaveBeenCalledWith({ resolution: 3_600_000 });
  });

  it("leave out process metrics if the host application reports them", async () => {
    const { types } = parseExposition((await createMetrics({ processMetrics: false }).expose()).body);
    expect([...types.keys()].filter((name) => !name.startsWith("fencepost_"))).toEqual([]);
  });

  it("count each event under its result label", async () => {
    const metrics = createMetrics({ processMetrics: false });
    for (const event of [...everyLabel(), ...everyLabel()]) metrics.sink(event);
    for (const result of keys(CREATE_RESULTS)) expect(await value(metrics, "tx_create_total", { result })).toBe(2);
    for (const result of keys(ACQUIRE_RESULTS)) expect(await value(metrics, "lease_acquire_total", { result })).toBe(2);
    for (const evidence of keys(EVIDENCE)) {
      expect(await value(metrics, "instance_declared_dead_total", { evidence })).toBe(2);
    }
    for (const result of keys(FORWARD_RESULTS)) expect(await value(metrics, "forward_total", { result })).toBe(2);
    for (const result of keys(STUCK_RESULTS)) {
      expect(await value(metrics, "stuck_resolution_total", { action: "CANCEL", result })).toBe(2);
    }
    for (const result of keys(RECONCILE_RESULTS)) expect(await value(metrics, "reconcile_total", { result })).toBe(2);
    for (const result of keys(GRAY_ZONE_RESULTS)) expect(await value(metrics, "gray_zone_total", { result })).toBe(2);
    for (const result of keys(RPC_RESULTS)) {
      expect(await value(metrics, "rpc_requests_total", { method: "eth_call", result })).toBe(2);
    }
    for (const result of SUBMIT_ANSWERS) {
      expect(await value(metrics, "tx_submit_total", { result })).toBe(4);
      expect(await value(metrics, "resubmit_total", { result })).toBe(2);
    }
  });

  it("increase by an event's `count` field if one event covers several items", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.sink({ type: "receipt.checked", chainId: 1, result: "found", count: 40 });
    metrics.sink({ type: "nonce.allocated", lane, first: 3, count: 7 });
    metrics.sink({ type: "writer.flushed", items: 120, writes: 3, durationMs: 4 });
    metrics.sink({ type: "writer.busy", writes: 3, tries: 1, reason: "locked" });
    expect(await value(metrics, "writer_busy_total")).toBe(1);
    expect(await value(metrics, "receipt_check_total", { result: "found" })).toBe(40);
    expect(await value(metrics, "nonce_allocated_total")).toBe(7);
    expect(await value(metrics, "writer_batch_size_sum")).toBe(120);
  });

  it("count the rows that retention deletes", async () => {
    const metrics = createMetrics({ processMetrics: false });
    const round = { type: "retention.round", keptMs: 9, requestIds: 1, oldestAgeMs: 7_500 } as const;
    metrics.sink({ ...round, transactions: 3, completions: 4 });
    metrics.sink({ ...round, transactions: 2, completions: 0 });
    expect(await value(metrics, "retention_removed_total", { what: "transaction" })).toBe(5);
    expect(await value(metrics, "retention_removed_total", { what: "completion" })).toBe(4);
    expect(await value(metrics, "retention_removed_total", { what: "request_id" })).toBe(2);
    expect(await value(metrics, "retention_oldest_completion_seconds")).toBe(7.5);
    metrics.sink({ ...round, transactions: 0, completions: 0, oldestAgeMs: null });
    expect(await value(metrics, "retention_oldest_completion_seconds")).toBe(0);
  });

  it("measure the time to broadcast at the first accepted broadcast only", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.sink(submission({ answer: "unknown", sinceCreatedMs: 5000 }));
    metrics.sink(submission({ answer: "alreadyKnown", sinceCreatedMs: 250 }));
    metrics.sink(submission({ answer: "accepted", first: false, sinceCreatedMs: 9000 }));
    metrics.sink(submission({ answer: "accepted", sinceCreatedMs: null }));
    expect(await value(metrics, "time_to_broadcast_seconds_count")).toBe(1);
    expect(await value(metrics, "time_to_broadcast_seconds_sum")).toBe(0.25);

    const report = { type: "tx.transition", lane, txId: "t", nonce: 1, txHash, nodeId: "n", token: 1 } as const;
    metrics.sink({ ...report, event: "mine", from: "TRACKING", state: "TRACKING", subState: "MINED" });
    metrics.sink({ ...report, event: "confirm", from: "TRACKING", state: "CONFIRMED", subState: null, ageMs: 12_000 });
    expect(await value(metrics, "time_to_finality_seconds_count")).toBe(1);
    expect(await value(metrics, "time_to_finality_seconds_sum")).toBe(12);
  });

  it("show a signer's last known balance", async () => {
    const metrics = createMetrics({ processMetrics: false, checksum: (address) => address.toUpperCase() });
    for (const balance of [5n, 10n ** 18n]) metrics.sink({ type: "signer.balance", lane, balance });
    const labels = { chain_id: String(lane.chainId), signer: lane.signer.toUpperCase() };
    expect(await value(metrics, "signer_balance_wei", labels)).toBe(1e18);
  });

  it("drop the series of a lane that the node no longer owns", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.sink({ type: "signer.balance", lane, balance: 5n });
    metrics.sink({ type: "nonce.drift", lane, cursor: 5, chainCount: 10, proved: false });
    metrics.sink({ type: "lane.stopped", lane, reason: "released" });
    expect(await value(metrics, "signer_balance_wei")).toBeUndefined();
    expect(await value(metrics, "nonce_drift")).toBeUndefined();
  });

  // protects [Signals] src/adapters/system/metrics.ts
  it("start every alert counter at zero, so that the first alert is visible as an increase", async () => {
    const metrics = createMetrics({ processMetrics: false });
    const codes = (await scrape(metrics)).filter(({ name }) => name === "fencepost_alert_total");
    expect(codes.map(({ labels }) => labels.code)).toEqual([...ALERT_CODES]);
    metrics.sink({ type: "alert", severity: "CRITICAL", code: "CHAIN_DOWN", message: "m", chainId: 1 });
    expect(await value(metrics, "alert_total", { code: "CHAIN_DOWN" })).toBe(1);
  });

  it("show the difference between a lane's next nonce and the chain's transaction count", async () => {
    const metrics = createMetrics({ processMetrics: false, checksum: (address) => address.toUpperCase() });
    const drift = { type: "nonce.drift", cursor: 5, chainCount: 10, proved: false } as const;
    const read = (signer: string) => value(metrics, "nonce_drift", { chain_id: "1", signer: signer.toUpperCase() });
    metrics.sink({ ...drift, lane });
    metrics.sink({ ...drift, lane: other });
    expect([await read(lane.signer), await read(other.signer)]).toEqual([5, 5]);
    metrics.sink({ ...drift, lane, proved: true });
    expect([await read(lane.signer), await read(other.signer)]).toEqual([0, 5]);
    metrics.sink({ type: "nonce.allocated", lane: other, first: 5, count: 1 });
    expect(await read(other.signer)).toBe(0);
  });

  it("show which endpoints are in use, labelled by their position in the configuration", async () => {
    const metrics = createMetrics({ processMetrics: false });
    const read = () => value(metrics, "rpc_endpoint_up", { chain_id: "1", endpoint: "2" });
    for (const [state, up] of [
      ["up", 1],
      ["behind", 0],
      ["failing", 0],
      ["foreign", 0],
    ] as const) {
      metrics.sink({ type: "rpc.endpoint", chainId: 1, endpoint: 1, state });
      expect(await read(), state).toBe(up);
    }
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts
  it("show no nonce drift when a new lane reads its first transaction count from the chain", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.sink({ type: "nonce.firstCount", lane, chainCount: 400 });
    expect(await value(metrics, "nonce_drift")).toBeUndefined();
  });

  it("count each call of a batched RPC request, and the request's duration once", async () => {
    const metrics = createMetrics({ processMetrics: false });
    const request = { type: "rpc.request", chainId: 1, endpoint: 0, result: "ok", durationMs: 1 } as const;
    metrics.sink({ ...request, method: "eth_sendRawTransaction", calls: 40 });
    metrics.sink({ ...request, method: "eth_sendRawTransaction", calls: 2 });
    const labels = { method: "eth_sendRawTransaction" };
    expect(await value(metrics, "rpc_requests_total", { ...labels, result: "ok" })).toBe(42);
    expect(await value(metrics, "rpc_duration_seconds_count", labels)).toBe(2);
  });

  it("limit the number of method labels for RPC requests", async () => {
    const metrics = createMetrics({ processMetrics: false });
    const request = { type: "rpc.request", chainId: 1, endpoint: 0, result: "ok", calls: 1, durationMs: 1 } as const;
    for (let i = 0; i < 500; i++) metrics.sink({ ...request, method: `evil_${i}` });
    const methods = (await scrape(metrics)).filter((sample) => sample.name === "fencepost_rpc_requests_total");
    expect(methods.length).toBe(65);
    expect(await value(metrics, "rpc_requests_total", { method: "other" })).toBe(436);
  });

  it("count HTTP requests by route pattern and status", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.httpRequest({ method: "POST", route: "/api/v1/tx", status: 202, durationMs: 8 });
    const labels = { method: "POST", route: "/api/v1/tx", status: "202" };
    expect(await value(metrics, "http_request_duration_seconds_count", labels)).toBe(1);
  });

  it("are independent per metrics instance", async () => {
    const [one, two] = [createMetrics({ processMetrics: false }), createMetrics({ processMetrics: false })];
    one.sink({ type: "lease.fenced", lane, token: 1, write: "sign", stoppedBy: "database" });
    expect(await value(one, "lease_fenced_total")).toBe(1);
    expect(await value(two, "lease_fenced_total")).toBe(0);
  });
});

describe("gauges computed at scrape time", () => {
  it("read their source at each scrape", async () => {
    const metrics = createMetrics({ processMetrics: false });
    let held = 1;
    const gauges: Gauges = { lanesHeld: () => held };
    metrics.connect({ gauge: (name) => gauges[name]?.(), cluster: async () => aReading({ TRACKING: 4 }) });
    expect(await value(metrics, "lease_held")).toBe(1);
    held = 3;
    expect(await value(metrics, "lease_held")).toBe(3);
    expect(await value(metrics, "pending_oldest_age_seconds")).toBe(2.5);
    expect(await value(metrics, "tx_state", { state: "TRACKING" })).toBe(4);
  });

  it("have a series for each trouble of a webhook while it lasts", async () => {
    const metrics = createMetrics({ processMetrics: false });
    let troubles = [{ code: "WEBHOOK_FAILING", subscriber: "books" }];
    metrics.connect({ webhookTroubles: () => troubles });
    expect(await value(metrics, "webhook_trouble", { code: "WEBHOOK_FAILING", subscriber: "books" })).toBe(1);
    troubles = [];
    expect(await value(metrics, "webhook_trouble", { code: "WEBHOOK_FAILING", subscriber: "books" })).toBeUndefined();
  });

  it("show an age of zero if nothing is pending", async () => {
    const metrics = createMetrics({ processMetrics: false });
    let states: Record<string, number> = { STUCK: 1 };
    metrics.connect({ gauge: () => null, cluster: () => aReading(states) });
    expect(await value(metrics, "held_pending_oldest_age_seconds")).toBe(0);
    expect(await value(metrics, "tx_state", { state: "STUCK" })).toBe(1);
    states = {};
    expect(await value(metrics, "tx_state", { state: "STUCK" })).toBeUndefined();
  });

  it("are missing, not zero, if their source fails", async () => {
    const metrics = createMetrics({ processMetrics: false });
    let up = true;
    const database = async <T>(answer: T) => {
      if (!up) throw new Error("database down");
      return answer;
    };
    const gauges: Gauges = { lanesHeld: () => 2 };
    metrics.connect({ gauge: (name) => gauges[name]?.(), cluster: () => database(aReading({ TRACKING: 9 })) });
    expect(await value(metrics, "pending_depth")).toBe(9);
    expect(await value(metrics, "database_up")).toBe(1);
    up = false;
    expect(await value(metrics, "database_up")).toBe(0);
    expect(await value(metrics, "pending_depth")).toBeUndefined();
    expect(await value(metrics, "tx_state")).toBeUndefined();
    expect(await value(metrics, "receipt_backlog")).toBeUndefined();
    expect(await value(metrics, "lease_held")).toBe(2);
  });
});

it("the metric tx_outcome_total counts each transition into STUCK or a final state", async () => {
  const metrics = createMetrics({ processMetrics: false });
  const tx = { type: "tx.transition", lane, txId: "t", nonce: 1, txHash, nodeId: "n", token: 1 } as const;
  const outcome = (state: string, sub_state: string) => value(metrics, "tx_outcome_total", { state, sub_state });
  metrics.sink({ ...tx, event: "mine", from: "TRACKING", state: "TRACKING", subState: "MINED" });
  metrics.sink({ ...tx, event: "stick", from: "TRACKING", state: "STUCK", subState: null, ageMs: 5 });
  metrics.sink({ ...tx, event: "decide", from: "STUCK", state: "STUCK", subState: null });
  metrics.sink({ ...tx, event: "confirm", from: "STUCK", state: "CONFIRMED", subState: null, ageMs: 9 });
  metrics.sink({ ...tx, event: "revert", from: "TRACKING", state: "FAILED_FINAL", subState: "REVERTED", ageMs: 9 });
  expect(await outcome("STUCK", "")).toBe(1);
  expect(await outcome("CONFIRMED", "")).toBe(1);
  expect(await outcome("FAILED_FINAL", "REVERTED")).toBe(1);
  expect(await outcome("TRACKING", "MINED")).toBeUndefined();
});

it("metrics show whether a chain is reachable, and its newest block", async () => {
  const metrics = createMetrics({ processMetrics: false });
  const up = () => value(metrics, "chain_up", { chain_id: "1" });
  metrics.sink({ type: "chain.head", chainId: 1, number: 7, hash: txHash });
  expect([await up(), await value(metrics, "chain_head_block", { chain_id: "1" })]).toEqual([1, 7]);
  metrics.sink({ type: "chain.unreachable", chainId: 1, reason: "r" });
  expect(await up()).toBe(0);
  metrics.sink({ type: "chain.reachable", chainId: 1 });
  expect(await up()).toBe(1);
});

it.each([
  [
    "time_to_finality_seconds",
    "one block of 250 ms, two confirmations at 2 s, twenty at 12 s, a finalized tag",
    [0.25, 4, 240, 900],
  ],
  ["time_to_broadcast_seconds", "the promised latency under load, and one block of 12 s", [0.02, 0.15, 12]],
  ["rpc_duration_seconds", "a node on the same machine, and one that times out", [0.001, 30]],
  ["http_request_duration_seconds", "a read, and a long poll that times out", [0.001, 30]],
])("the histogram %s has a bucket for %s", async (name, _, edges) => {
  const metrics = createMetrics({ processMetrics: false });
  everyGauge(metrics);
  for (const event of everyLabel()) metrics.sink(event);
  const bounds = (await scrape(metrics)).flatMap((sample) =>
    sample.name === `fencepost_${name}_bucket` ? [Number(sample.labels.le)] : [],
  );
  expect(bounds).toEqual(expect.arrayContaining(edges));
});

it("metrics count transactions that become STUCK or block their lane", async () => {
  const metrics = createMetrics({ processMetrics: false });
  metrics.sink({ type: "lane.blocked", lane, txId: "t", nonce: 1, behind: 2 });
  const move = { type: "tx.transition", lane, txId: "t", nonce: 1, from: "TRACKING", subState: null, txHash } as const;
  metrics.sink({ ...move, event: "stick", state: "STUCK", nodeId: "n", token: 1 });
  metrics.sink({ ...move, event: "decide", state: "STUCK", nodeId: "n", token: 1 });
  expect(await value(metrics, "head_of_line_blocked_total")).toBe(1);
  expect(await value(metrics, "stuck_total")).toBe(1);
});

describe("docs/metrics.md", () => {
  const [metricsPart = "", resultsPart = ""] = readFileSync("docs/metrics.md", "utf8").split("## Values of `result`");
  const rows = (text: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| /, "")));
  const names = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");

  it("lists every exposed metric with its type and labels, and no others", async () => {
    const metrics = createMetrics({ processMetrics: false });
    for (const event of everyLabel()) metrics.sink(event);
    everyGauge(metrics);
    const { types, samples } = parseExposition((await metrics.expose()).body);
    const actual = [...types].map(([name, type]) => {
      const sample = samples.find((one) => one.name === name || one.name === `${name}_count`);
      return { name, type, labels: Object.keys(sample?.labels ?? {}).sort() };
    });
    const documented = rows(metricsPart).map(([name, type, labels]) => ({
      name: names(name)[0],
      type,
      labels: names(labels).sort(),
    }));
    const byName = (a: { name?: string | undefined }, b: { name?: string | undefined }) =>
      String(a.name).localeCompare(String(b.name));
    expect(documented.sort(byName)).toEqual(actual.sort(byName));
  });

  it("states for each metric whether it is about the node or the cluster", () => {
    const lines = metricsPart.split("\n").filter((line) => line.startsWith("| `fencepost_"));
    const unclear = lines.filter((line) => !/^\| `\w+` \| \w+ \|( (`\w+` ?)+)? \| (node|cluster) \| \S/.test(line));
    expect(unclear).toEqual([]);
    expect(
      lines
        .filter((line) => line.includes(" | cluster | "))
        .map((line) => names(line)[0])
        .sort(),
    ).toEqual([
      "fencepost_lanes_suspended",
      "fencepost_lanes_unowned",
      "fencepost_pending_depth",
      "fencepost_pending_oldest_age_seconds",
      "fencepost_tx_state",
      "fencepost_webhook_trouble",
    ]);
  });

  it("lists every value of every result label, and no others", async () => {
    const metrics = createMetrics({ processMetrics: false });
    for (const event of everyLabel()) metrics.sink(event);
    const actual = (await scrape(metrics))
      .filter((sample) => sample.labels.result !== undefined)
      .map((sample) => `${sample.name} ${sample.labels.result}`);
    const documented = rows(resultsPart).flatMap(([metric, result]) =>
      names(metric).map((name) => `${name} ${names(result)[0]}`),
    );
    expect(documented.sort()).toEqual(actual.sort());
  });
});
