import { isTaken } from "../../domain/answers.ts";
import { type Address, type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";
import type { Instruments } from "./metrics.ts";
import type { TelemetrySink } from "./telemetry.ts";

type EventOf<T extends TelemetryEvent["type"]> = Extract<TelemetryEvent, { readonly type: T }>;

/** Methods beyond this many share one label: method names that come from outside must not grow the registry without end. */
const METHOD_LABELS = 64;

/** Counts what happens. Events that nothing is measured by are left to the log. */
export function createMetricsSink(instruments: Instruments, checksum: (address: Address) => string): TelemetrySink {
  const method = boundedLabel(METHOD_LABELS);
  const drift = createDriftGauge(instruments, checksum);
  return (event) => {
    switch (event.type) {
      case "tx.transition":
        if (event.ageMs !== undefined) instruments.timeToFinality.observe(event.ageMs / 1000);
        if (event.event === "stick") instruments.stuck.inc();
        return;
      case "lane.blocked":
        return instruments.headOfLineBlocked.inc();
      case "submit.answered":
        return countSubmission(instruments, event);
      case "create.answered":
        return instruments.create.inc({ result: event.result });
      case "forward":
        return instruments.forward.inc({ result: event.result });
      case "rpc.request":
        return countRequest(instruments, event, method(event.method));
      case "rpc.endpoint":
        return instruments.rpcEndpointUp.set(
          { chain_id: String(event.chainId), endpoint: String(event.endpoint + 1) },
          event.state === "up" ? 1 : 0,
        );
      case "writer.flushed":
        return instruments.batchSize.observe(event.items);
      case "writer.busy":
        return instruments.writerBusy.inc();
      case "receipt.checked":
        return instruments.receiptCheck.inc({ result: event.result }, event.count);
      case "nonce.allocated":
        drift.over(laneKey(event.lane));
        return instruments.nonceAllocated.inc(event.count);
      case "stuck.resolution":
        return instruments.stuckResolution.inc({ action: event.action, result: event.result });
      case "nonce.recycled":
        return instruments.nonceRecycled.inc(event.count);
      case "lane.reconciled":
        return instruments.reconcile.inc({ result: event.result });
      case "gray.zone":
        return instruments.grayZone.inc({ result: event.result });
      case "signer.balance":
        return instruments.signerBalance.set(labelsOf(event.lane, checksum), Number(event.balance));
      case "nonce.drift":
        return drift.seen(event);
      case "lease.acquire":
        return instruments.leaseAcquire.inc({ result: event.result });
      case "instance.declaredDead":
        return instruments.declaredDead.inc({ evidence: event.evidence });
      case "lease.fenced":
        return instruments.leaseFenced.inc();
      case "confirmations.newFork":
        return instruments.newFork.inc();
      default:
        return;
    }
  };
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
