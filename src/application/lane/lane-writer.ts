import {
  isSettled,
  TRANSITIONS,
  type TransitionEvent,
  type TransitionRule,
  transition,
} from "../../domain/transitions.ts";
import type { Clock } from "../../ports/clock.ts";
import { type NewCompletion, OutcomeUnknown, type TransitionItem } from "../../ports/lane-store.ts";
import type { Telemetry, TelemetryEvent } from "../../ports/telemetry.ts";
import type { OwnedLane, Tracked } from "./owned-lane.ts";
import { TermOver } from "./term.ts";

export interface LaneWriterPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly nodeId: string;
}

type Changes = Omit<TransitionItem, "txId" | "event" | "from" | "to" | "subState" | "completion">;

export interface Planned {
  readonly tx: Tracked;
  readonly item: TransitionItem;
}

/**
 * Moves a transaction in memory, through the transition table, and says what the database must do to follow. Writes of
 * a lane commit in the order they are planned, so the next plan may build on this one before it is durable; if it
 * fails, the whole lane is read again.
 */
export function plan(tx: Tracked, event: TransitionEvent, changes: Changes = {}): Planned {
  const from = tx.status;
  const to = transition(from, event);
  tx.status = to;
  const rule: TransitionRule = TRANSITIONS[event];
  const completion: NewCompletion | undefined = rule.completion && {
    ...rule.completion,
    subState: to.subState,
    txHash: tx.receipt?.txHash ?? tx.attempts.at(-1)?.txHash ?? null,
  };
  const item = { txId: tx.txId, event, from: from.state, to: to.state, subState: to.subState, ...changes };
  return { tx, item: completion === undefined ? item : { ...item, completion } };
}

/** Moves in one write; more would hold the lane's row for longer than a takeover should have to wait. */
const MOVES_AT_ONCE = 200;

/** Commits planned moves. Throws `TermOver` where not all were applied, or the term ended meanwhile. */
export function commitPlanned(ports: LaneWriterPorts, lane: OwnedLane, planned: readonly Planned[]): Promise<void> {
  return lane.term.during(
    planned.length <= MOVES_AT_ONCE ? commitSome(ports, lane, planned) : commitAll(ports, lane, planned),
  );
}

async function commitAll(ports: LaneWriterPorts, lane: OwnedLane, planned: readonly Planned[]): Promise<void> {
  const writes: Promise<void>[] = [];
  for (let from = 0; from < planned.length; from += MOVES_AT_ONCE) {
    writes.push(commitSome(ports, lane, planned.slice(from, from + MOVES_AT_ONCE)));
  }
  await Promise.all(writes);
}

/**
 * No async function: a thousand lanes wait here with a move each, and what an async function keeps while it waits is what
 * the garbage collector copies.
 */
function commitSome(ports: LaneWriterPorts, lane: OwnedLane, planned: readonly Planned[]): Promise<void> {
  if (planned.length === 0) return Promise.resolve();
  return lane.term.write({ kind: "transition", items: planned.map(({ item }) => item) }).then(
    ({ items }) => {
      planned.forEach((move, index) => {
        if (items[index] === "applied") reportPlanned(ports, lane, move);
      });
      const conflict = planned[items.indexOf("conflict")]?.item;
      if (conflict !== undefined)
        readAgain(lane, `${conflict.txId} was not ${conflict.from} when it was to ${conflict.event}`);
    },
    (error: unknown) => {
      lane.mayStillCommit ||= error instanceof OutcomeUnknown;
      readAgain(lane, `a write failed: ${error instanceof Error ? error.message : String(error)}`, error);
    },
  );
}

/** Memory has moved already. Where the database did not follow, or may have, the lane is read again. */
function readAgain({ term }: OwnedLane, reason: string, error?: unknown): never {
  term.readAgain(reason);
  throw error instanceof TermOver ? error : new TermOver();
}

function reportPlanned(ports: LaneWriterPorts, lane: OwnedLane, { tx, item }: Planned): void {
  const { event, from, to: state, subState } = item;
  const txHash = tx.receipt?.txHash ?? tx.attempts.at(-1)?.txHash ?? null;
  const ageMs = isSettled(state) ? { ageMs: ports.clock.now().getTime() - tx.createdAt.getTime() } : {};
  reportMove(ports, lane, { txId: tx.txId, nonce: tx.nonce, event, from, state, subState, txHash, ...ageMs });
}

type Transition = Extract<TelemetryEvent, { readonly type: "tx.transition" }>;

/** Tells what the database has taken. */
export function reportMove(
  { telemetry, nodeId }: Pick<LaneWriterPorts, "telemetry" | "nodeId">,
  { lane, fence }: OwnedLane,
  move: Omit<Transition, "type" | "lane" | "nodeId" | "token">,
): void {
  telemetry.emit({ type: "tx.transition", lane, ...move, nodeId, token: fence.token });
}
