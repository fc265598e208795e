import { stepPlanned } from "../../domain/ledger/index.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import {
  isSettled,
  TRANSITIONS,
  type TransitionEvent,
  type TransitionRule,
  transition,
} from "../../domain/transaction/transitions.ts";
import { type NewCompletion, OutcomeUnknown, type TransitionItem } from "../../ports/lane-store.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";
import type { LaneWriterPorts } from "./lane-ports.ts";
import type { OwnedLane, Tracked } from "./owned-lane.ts";
import { TermOver } from "./term.ts";

export type { FeedWriterPorts, LaneWriterPorts } from "./lane-ports.ts";

type Changes = Omit<TransitionItem, "txId" | "event" | "from" | "to" | "subState" | "completion">;

export interface Planned {
  readonly tx: Tracked;
  readonly item: TransitionItem;
}

/**
 * Plans a step of a transaction, through the transition table: what the database must do, and what memory expects of it
 * from here on. What is planned must be committed. Writes of a lane commit in the order they are planned, so the next
 * plan may build on this one before it is durable; if it fails, the whole lane is read again.
 */
export function plan(tx: Tracked, event: TransitionEvent, changes: Changes = {}): Planned {
  const from = tx.status;
  const { state: to, subState } = transition(from, event);
  const rule: TransitionRule = TRANSITIONS[event];
  const completion: NewCompletion | undefined = rule.completion && {
    ...rule.completion,
    subState,
    txHash: hashOf(tx),
  };
  const bare = { txId: tx.txId, event, from: from.state, to, subState, ...changes };
  const item = completion === undefined ? bare : { ...bare, completion };
  tx.stands(stepPlanned, item);
  return { tx, item };
}

/** Of what was mined, or else of its newest payload. */
function hashOf({ receipt, attempts }: Tracked) {
  return receipt?.txHash ?? attempts.at(-1)?.txHash ?? null;
}

/** Moves in one write; more would hold the lane's row for longer than a takeover should have to wait. */
const MOVES_AT_ONCE = 200;

/** Commits planned moves. Throws `TermOver` where not all were applied, or the term ended meanwhile. */
export function commitPlanned(ports: LaneWriterPorts, lane: OwnedLane, planned: readonly Planned[]): Promise<void> {
  return lane.term.during(
    planned.length <= MOVES_AT_ONCE ? commitSome(ports, lane, planned) : commitAll(ports, lane, planned),
  );
}

async function commitAll(ports: LaneWriterPorts, lane: OwnedLane, planned: readonly Planned[]) {
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
function commitSome(ports: LaneWriterPorts, lane: OwnedLane, planned: readonly Planned[]) {
  if (planned.length === 0) return Promise.resolve();
  for (const { tx, item } of planned) lane.awaitStep(tx, item);
  return lane.term.write({ kind: "transition", items: planned.map(({ item }) => item) }).then(
    ({ items }) => {
      planned.forEach((move, index) => {
        if (items[index] === "applied") reportPlanned(ports, lane, move);
      });
      const at = items.findIndex((fate) => fate !== "applied");
      const conflict = planned[at]?.item;
      if (conflict === undefined) return;
      const { txId, from, event } = conflict;
      const why = items[at] === "forbidden" ? "was not allowed by a policy" : `was not ${from}`;
      readAgain(lane, `${txId} ${why} when it was to ${event}`);
    },
    (error: unknown) => {
      lane.mayStillCommit ||= error instanceof OutcomeUnknown;
      readAgain(lane, `a write failed: ${messageOf(error)}`, error);
    },
  );
}

/** Memory has moved already. Where the database did not follow, or may have, the lane is read again. */
function readAgain({ term }: OwnedLane, reason: string, error?: unknown): never {
  term.readAgain(reason);
  throw error instanceof TermOver ? error : new TermOver();
}

function reportPlanned(ports: LaneWriterPorts, lane: OwnedLane, { tx, item }: Planned) {
  const { event, from, to: state, subState } = item;
  const txHash = hashOf(tx);
  const ageMs = isSettled(state) ? { ageMs: Math.max(0, ports.clock.now().getTime() - tx.createdAt.getTime()) } : {};
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
