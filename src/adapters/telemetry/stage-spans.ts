/**
 * Records one span per stage of a transaction, starting at the end of the previous stage. All spans are children of the
 * create's span, on every node, because its context is stored with the transaction. A node that took over the lane
 * reads the context once, and its first span starts at the takeover.
 */
import { type LaneKey, laneKey } from "../../domain/lane.ts";
import { parseTraceparent, type TraceContext } from "../../domain/text/trace-context.ts";
import { isSettled, type TransitionEvent } from "../../domain/transaction/transitions.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";

export interface SpanReport {
  readonly name: string;
  readonly parent: TraceContext;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly failure: string | null;
}

interface StageSpanPorts {
  readonly clock: Pick<Clock, "now">;
  readonly report: (span: SpanReport) => void;
  /** True if a registered OpenTelemetry SDK records traces. */
  readonly isOn: () => boolean;
}

type Transition = Extract<TelemetryEvent, { readonly type: "tx.transition" }>;
type UnparentedSpan = Omit<SpanReport, "parent">;

/**
 * Span name of each event that ends a stage, or that is a special case such as a reorg or a repricing. Other events are
 * only in the transaction's history.
 */
const NAMES: Partial<Record<TransitionEvent, string>> = {
  sign: "fencepost.sign",
  broadcast: "fencepost.broadcast",
  mine: "fencepost.receipt",
  stick: "fencepost.stuck",
  withdraw: "fencepost.reorg",
  reprice: "fencepost.reprice",
  cancel: "fencepost.cancel",
  replace: "fencepost.replace",
};

/** Largest number of remembered transactions. Beyond it, the oldest are dropped, and read again if they change. */
const MOST_KNOWN = 100_000;
/**
 * Limit on pending reads of the database. Beyond it spans are dropped: tracing must not slow the takeover of many
 * transactions.
 */
const MOST_ASKED = 1_000;
const ASKED_AT_ONCE = 4;

interface Known {
  /** Trace context of the transaction's create; null if it has no trace. */
  readonly parent: TraceContext | null;
  readonly sinceMs: number;
}

type ReadContext = (txId: string) => Promise<string | null>;

export function createStageSpans({ clock, report, isOn }: StageSpanPorts) {
  const nowMs = () => clock.now().getTime();
  const known = new Map<string, Known>();
  const resumedMs = new Map<LaneKey, number>();
  const know = (txId: string, parent: TraceContext | null, sinceMs: number) => {
    known.delete(txId);
    const [oldest] = known.keys();
    if (oldest !== undefined && known.size >= MOST_KNOWN) known.delete(oldest);
    known.set(txId, { parent, sinceMs });
  };
  const { ask, connect } = contextReads((txId, parent, spans) => {
    if (parent !== null) for (const each of spans) report({ ...each, parent });
    const last = spans.at(-1);
    if (last !== undefined && last.name !== "fencepost.finality") know(txId, parent, last.untilMs);
  });
  const move = (event: Transition) => {
    const { txId, state } = event;
    const untilMs = nowMs();
    if (event.event === "allocate") return know(txId, parseTraceparent(event.traceparent), untilMs);
    const before = known.get(txId);
    const name = isSettled(state) && event.from !== state ? "fencepost.finality" : NAMES[event.event];
    if (name === undefined) return;
    const sinceMs = before?.sinceMs ?? resumedMs.get(laneKey(event.lane)) ?? untilMs;
    const attributes = { ...attributesOf(event), "fencepost.resumed": before === undefined };
    const span = { name, sinceMs, untilMs, attributes, failure: failureOf(event) };
    if (before === undefined) return ask(txId, span);
    if (before.parent !== null) report({ ...span, parent: before.parent });
    if (isSettled(state)) known.delete(txId);
    else know(txId, before.parent, untilMs);
  };
  return {
    connect,
    sink: (event: TelemetryEvent) => {
      if (event.type === "lane.resumed") resumedMs.set(laneKey(event.lane), nowMs());
      if (event.type === "lane.stopped") resumedMs.delete(laneKey(event.lane));
      if (event.type === "tx.transition" && isOn()) move(event);
    },
  };
}

type Found = (txId: string, parent: TraceContext | null, spans: readonly UnparentedSpan[]) => void;

/**
 * Reads the trace contexts of transactions that another process created. Their spans are kept until the context
 * arrives.
 */
function contextReads(found: Found) {
  const asked = new Map<string, UnparentedSpan[]>();
  const queue: string[] = [];
  let asking = 0;
  let read: ReadContext | null = null;
  const askNext = async (read: ReadContext) => {
    asking++;
    for (let txId = queue.shift(); txId !== undefined; txId = queue.shift()) {
      const parent = parseTraceparent(await read(txId).catch(() => null));
      const spans = asked.get(txId) ?? [];
      asked.delete(txId);
      found(txId, parent, spans);
    }
    asking--;
  };
  return {
    connect: (by: ReadContext) => {
      read = by;
    },
    ask: (txId: string, span: UnparentedSpan) => {
      const waiting = asked.get(txId);
      if (waiting !== undefined) waiting.push({ ...span, sinceMs: waiting.at(-1)?.untilMs ?? span.sinceMs });
      else if (read !== null && asked.size < MOST_ASKED) {
        asked.set(txId, [span]);
        queue.push(txId);
        if (asking < ASKED_AT_ONCE) void askNext(read);
      }
    },
  };
}

function attributesOf({ txId, lane, nonce, state, subState, txHash, nodeId, token }: Transition) {
  return {
    "fencepost.tx_id": txId,
    "fencepost.chain_id": lane.chainId,
    "fencepost.signer": lane.signer,
    "fencepost.state": state,
    "fencepost.node_id": nodeId,
    "fencepost.fencing_token": token,
    ...(nonce !== null && { "fencepost.nonce": nonce }),
    ...(subState !== null && { "fencepost.sub_state": subState }),
    ...(txHash !== null && { "fencepost.tx_hash": txHash }),
  };
}

function failureOf({ state, subState }: Transition): string | null {
  if (state === "STUCK") return "STUCK";
  return state === "FAILED_FINAL" ? (subState ?? state) : null;
}
