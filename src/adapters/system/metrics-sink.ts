import { isTaken } from "../../domain/answers.ts";
import { type Address, type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";
import type { Instruments } from "./metrics.ts";
import type { TelemetrySink } from "./telemetry.ts";

type EventOf<T extends TelemetryEvent["type"]> = Extract<TelemetryEvent, { readonly type: T }>;

/** Methods beyond this many share one label: method names that come from outside must not grow the registry without end. */
const METHOD_LABELS = 64;

type Counting = { readonly [T in TelemetryEvent["type"]]?: (event: EventOf<T>) => void };

/** Counts what happens. Events that nothing is measured by are left to the log. */
export function createMetricsSink(instruments: Instruments, checksum: (address: Address) => string): TelemetrySink {
  const method = boundedLabel(METHOD_LABELS);
  const drift = createDriftGauge(instruments, checksum);
  const counting: Counting = {
    "tx.transition": ({ ageMs, event }) => {
      if (ageMs !== undefined) instruments.timeToFinality.observe(ageMs / 1000);
      if (event === "stick") instruments.stuck.inc();
    },
    "lane.blocked": () => instruments.headOfLineBlocked.inc(),
    "submit.answered": (event) => countSubmission(instruments, event),
    "create.answered": ({ result }) => instruments.create.inc({ result }),
    forward: ({ result }) => instruments.forward.inc({ result }),
    "rpc.request": (event) => countRequest(instruments, event, method(event.method)),
    "rpc.endpoint": ({ chainId, endpoint, state }) => {
      const labels = { chain_id: String(chainId), endpoint: String(endpoint + 1) };
      instruments.rpcEndpointUp.set(labels, state === "up" ? 1 : 0);
    },
    "writer.flushed": ({ items }) => instruments.batchSize.observe(items),
    "writer.busy": () => instruments.writerBusy.inc(),
    "receipt.checked": ({ result, count }) => instruments.receiptCheck.inc({ result }, count),
    "nonce.allocated": ({ lane, count }) => {
      drift.over(laneKey(lane));
      instruments.nonceAllocated.inc(count);
    },
    "stuck.resolution": ({ action, result }) => instruments.stuckResolution.inc({ action, result }),
    "nonce.recycled": ({ count }) => instruments.nonceRecycled.inc(count),
    "lane.reconciled": ({ result }) => instruments.reconcile.inc({ result }),
    "gray.zone": ({ result }) => instruments.grayZone.inc({ result }),
    "signer.balance": ({ lane, balance }) => instruments.signerBalance.set(labelsOf(lane, checksum), Number(balance)),
    "nonce.drift": drift.seen,
    "lease.acquire": ({ result }) => instruments.leaseAcquire.inc({ result }),
    "instance.declaredDead": ({ evidence }) => instruments.declaredDead.inc({ evidence }),
    "lease.fenced": () => instruments.leaseFenced.inc(),
    "confirmations.newFork": () => instruments.newFork.inc(),
  };
  return (event) => (counting[event.type] as TelemetrySink | undefined)?.(event);
}

function countSubmission(instruments: Instruments, event: EventOf<"submit.answered">): void {
  instruments.submit.inc({ result: event.answer });
  if (!event.first) instruments.resubmit.inc({ result: event.answer });
  else if (isTaken(event.answer) && event.sinceCreatedMs !== null) {
    instruments.timeToBroadcast.observe(event.sinceCreatedMs / 1000);
  }
}

function countRequest(instruments: Instruments, event: EventOf<"rpc.request">, method: string): void {
  instruments.rpcRequests.inc({ method, result: event.result }, event.calls);
  instruments.rpcSeconds.observe({ method }, event.durationMs / 1000);
}

/**
 * A drift is over when its proof moved the cursor, or when the lane allocates again: while a mined count above the
 * cursor awaits its proof, nothing is allocated. Only lanes that ever drifted have a series.
 */
function createDriftGauge(instruments: Instruments, checksum: (address: Address) => string) {
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
  return { over, seen };
}

function labelsOf(lane: Lane, checksum: (address: Address) => string) {
  return { chain_id: String(lane.chainId), signer: checksum(lane.signer) };
}

function boundedLabel(limit: number): (label: string) => string {
  const known = new Set<string>();
  return (label) => {
    if (known.has(label)) return label;
    if (known.size >= limit) return "other";
    known.add(label);
    return label;
  };
}
