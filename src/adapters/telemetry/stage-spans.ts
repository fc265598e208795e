/**
 * One span per stage of a transaction, starting at the end of the previous stage. All are children of the create's
 * span, on every node: its context is stored with the transaction. A node that took over the lane reads the context
 * once, and its first span starts at the takeover.
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

export interface StageSpanPorts {
  readonly clock: Pick<Clock, "now">;
  readonly report: (span: SpanReport) => void;
  /** True if an SDK records traces. */
  readonly isOn: () => boolean;
}

type Transition = Extract<TelemetryEvent, { readonly type: "tx.transition" }>;
type UnparentedSpan = Omit<SpanReport, "parent">;

/** Span name of each event that ends a stage or a detour. Other events are only in the transaction's history. */
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

/** Beyond this many, the oldest transactions are dropped, and read again if they change. */
const MOST_KNOWN = 100_000;
/**
 * Limit on pending reads of the database. Beyond it spans are dropped: tracing must not slow the takeover of many
 * transactions.
 */
const MOST_ASKED = 1_000;
const ASKED_AT_ONCE = 4;

interface Known {
  /** Null if the transaction has no trace. */
  readonly parent: TraceContext | null;
  readonly sinceMs: number;
}

export class StageSpans {
  private readonly ports: StageSpanPorts;
  private readonly known = new Map<string, Known>();
  private readonly resumedMs = new Map<LaneKey, number>();
  private readonly asked = new Map<string, UnparentedSpan[]>();
  private readonly queue: string[] = [];
  private asking = 0;
  private read: ((txId: string) => Promise<string | null>) | null = null;

  constructor(ports: StageSpanPorts) {
    this.ports = ports;
  }

  connect(read: (txId: string) => Promise<string | null>): void {
    this.read = read;
  }

  take(event: TelemetryEvent): void {
    if (event.type === "lane.resumed") this.resumedMs.set(laneKey(event.lane), this.nowMs());
    if (event.type === "lane.stopped") this.resumedMs.delete(laneKey(event.lane));
    if (event.type === "tx.transition" && this.ports.isOn()) this.move(event);
  }

  private move(event: Transition): void {
    const { txId, state } = event;
    const untilMs = this.nowMs();
    if (event.event === "allocate") {
      this.know(txId, parseTraceparent(event.traceparent), untilMs);
      return;
    }
    const before = this.known.get(txId);
    const name = isSettled(state) && event.from !== state ? "fencepost.finality" : NAMES[event.event];
    if (name === undefined) return;
    const sinceMs = before?.sinceMs ?? this.resumedMs.get(laneKey(event.lane)) ?? untilMs;
    const attributes = { ...attributesOf(event), "fencepost.resumed": before === undefined };
    const span = { name, sinceMs, untilMs, attributes, failure: failureOf(event) };
    if (before === undefined) {
      this.ask(txId, span);
      return;
    }
    if (before.parent !== null) this.ports.report({ ...span, parent: before.parent });
    if (isSettled(state)) this.known.delete(txId);
    else this.know(txId, before.parent, untilMs);
  }

  private know(txId: string, parent: TraceContext | null, sinceMs: number): void {
    this.known.delete(txId);
    const [oldest] = this.known.keys();
    if (oldest !== undefined && this.known.size >= MOST_KNOWN) this.known.delete(oldest);
    this.known.set(txId, { parent, sinceMs });
  }

  private ask(txId: string, span: UnparentedSpan): void {
    const waiting = this.asked.get(txId);
    if (waiting !== undefined) waiting.push({ ...span, sinceMs: waiting.at(-1)?.untilMs ?? span.sinceMs });
    else if (this.read !== null && this.asked.size < MOST_ASKED) {
      this.asked.set(txId, [span]);
      this.queue.push(txId);
      if (this.asking < ASKED_AT_ONCE) void this.askNext(this.read);
    }
  }

  private async askNext(read: (txId: string) => Promise<string | null>): Promise<void> {
    this.asking++;
    for (let txId = this.queue.shift(); txId !== undefined; txId = this.queue.shift()) {
      const parent = parseTraceparent(await read(txId).catch(() => null));
      const span = this.asked.get(txId) ?? [];
      this.asked.delete(txId);
      if (parent !== null) for (const each of span) this.ports.report({ ...each, parent });
      const last = span.at(-1);
      if (last !== undefined && last.name !== "fencepost.finality") this.know(txId, parent, last.untilMs);
    }
    this.asking--;
  }

  private nowMs(): number {
    return this.ports.clock.now().getTime();
  }
}

function attributesOf({ txId, lane, nonce, state, subState, txHash, nodeId, token }: Transition) {
  return {
    "fencepost.tx_id": txId,
    "fencepost.chain_id": lane.chainId,
    "fencepost.signer": lane.signer,
    "fencepost.state": state,
    "fencepost.node_id": nodeId,
    "fencepost.fencing_token": token,
    ...(nonce === null ? {} : { "fencepost.nonce": nonce }),
    ...(subState === null ? {} : { "fencepost.sub_state": subState }),
    ...(txHash === null ? {} : { "fencepost.tx_hash": txHash }),
  };
}

function failureOf({ state, subState }: Transition): string | null {
  if (state === "STUCK") return "STUCK";
  return state === "FAILED_FINAL" ? (subState ?? state) : null;
}
