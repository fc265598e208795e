/**
 * Stage 2: a nonce is bound here, and nowhere else.
 *
 * Reads: the chain's mined count where the last look is old (nonce-floor.ts). Writes, in one transaction under the
 * lane's lock: free holes taken, cursor advance, transaction, payload, history. Invariants: I3 (consecutive, never backwards), I5 (a repeat
 * of a request id consumes nothing), I4 (answered only once durable).
 * A crash before the commit leaves nothing; after it, an ALLOCATED row that the lane's owner signs in its turn.
 */
import { DatabaseSilent } from "../../../domain/errors.ts";
import { batchFailed } from "../../../domain/pace/count-events.ts";
import { isLimited, type Policies } from "../../../domain/policy/policy.ts";
import { traceparentIn } from "../../../domain/text/trace-context.ts";
import {
  type AllocatedRecord,
  type AllocateFate,
  type NewTransaction,
  OutcomeUnknown,
  type Unfenced,
} from "../../../ports/lane-store.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { type LaneWriterPorts, noteTime, reportMove } from "../../lane/lane-writer.ts";
import type { LimitPorts } from "../../lane/limits.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { TermOver } from "../../lane/term.ts";
import { happened } from "../../lane/tracked.ts";
import { nonceFloor } from "./nonce-floor.ts";

/** One fate per item, in order. Throws `TermOver` where the lane was lost while they waited: nothing was consumed. */
export async function allocate(
  ports: LaneWriterPorts & LimitPorts,
  context: ChainContext,
  lane: OwnedLane,
  items: readonly NewTransaction[],
): Promise<readonly AllocateFate[]> {
  // A held lane gives no nonce; whether a request exists already, its database can still say.
  const floor = lane.heldByHistory ? null : await lane.term.during(nonceFloor(ports, context, lane), "allocate");
  const fill = lane.freeNonces();
  const filling = fill.length === 0 ? {} : { fill };
  const outcome = await write(lane, { kind: "allocate", floor, ...filling, items });
  await ports.failpoint("allocate.committed");
  const records = recordsOf(outcome.items, items, ports.limits?.policies ?? null);
  const recycled = recycle(ports, lane, outcome.items);
  // Committed under our term: told also where the lane was handed over meanwhile. The next owner finds the rows.
  if (records.length > 0) {
    report(ports, lane, records, items);
    lane.term.begin(() => {
      queueUp(lane, records, recycled);
      for (const record of records) noteTime(lane, record, ports.clock);
    });
  }
  return outcome.items;
}

function queueUp(lane: OwnedLane, records: readonly AllocatedRecord[], recycled: ReadonlySet<number>): void {
  for (const record of records) if (recycled.has(record.nonce)) lane.slipIn(record);
  lane.backlog.enqueue(records.filter(({ nonce }) => !recycled.has(nonce)));
  lane.signing?.kick();
}

async function write(lane: OwnedLane, write: Unfenced<"allocate">) {
  try {
    return await lane.term.write(write);
  } catch (error) {
    happened(lane, batchFailed);
    const isTold = error instanceof OutcomeUnknown || error instanceof TermOver;
    throw isTold ? error : new DatabaseSilent("nothing was accepted", error);
  }
}

/** The nonces that were holes and are none any more. */
function recycle(ports: LaneWriterPorts, lane: OwnedLane, fates: readonly AllocateFate[]): ReadonlySet<number> {
  const recycled = fates.flatMap((fate) => (fate.fate === "created" && fate.recycled === true ? [fate.nonce] : []));
  if (recycled.length > 0) {
    ports.telemetry.emit({ type: "nonce.recycled", lane: lane.lane, count: recycled.length });
  }
  return new Set(recycled);
}

/** Of those that were created. */
function recordsOf(
  fates: readonly AllocateFate[],
  items: readonly NewTransaction[],
  policies: Policies | null,
): readonly AllocatedRecord[] {
  const records: AllocatedRecord[] = [];
  fates.forEach((fate, index) => {
    if (fate.fate !== "created") return;
    const { txId, requestId, payload, gas, gasCost, lane, owner, ...more } = (items[index] as NewTransaction).intent;
    const { exactNonce, validUntil } = more;
    const bare = { txId, nonce: fate.nonce, requestId, payload, gas, createdAt: fate.createdAt };
    const pinned = exactNonce === undefined ? bare : { ...bare, pinned: true as const };
    const record = validUntil === undefined ? pinned : { ...pinned, validUntil };
    const isCounted = policies !== null && isLimited(policies, lane.signer, owner);
    records.push(isCounted ? { ...record, mostCost: payload.value + gasCost } : record);
  });
  return records;
}

function report(
  ports: LaneWriterPorts,
  lane: OwnedLane,
  records: readonly AllocatedRecord[],
  items: readonly NewTransaction[],
): void {
  const traces = tracesOf(items);
  const first = records[0] as AllocatedRecord;
  ports.telemetry.emit({ type: "nonce.allocated", lane: lane.lane, first: first.nonce, count: records.length });
  for (const { txId, nonce } of records) {
    const state = { from: null, state: "ALLOCATED", subState: null, txHash: null } as const;
    const traceparent = traces.get(txId);
    const trace = traceparent === undefined ? {} : { traceparent };
    reportMove(ports, lane, { txId, nonce, event: "allocate", ...state, ...trace });
  }
}

function tracesOf(items: readonly NewTransaction[]): ReadonlyMap<string, string> {
  const traces = new Map<string, string>();
  for (const { intent } of items) {
    const traceparent = intent.metadata === null ? null : traceparentIn(intent.metadata);
    if (traceparent !== null) traces.set(intent.txId, traceparent);
  }
  return traces;
}
