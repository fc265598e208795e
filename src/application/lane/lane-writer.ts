import { type FeeLimit, limitInWords } from "../../domain/fees/ceilings.ts";
import { stepPlanned } from "../../domain/ledger/index.ts";
import { expiryAhead, expiryLookDue } from "../../domain/pace/lane-time.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import type { Receipt } from "../../domain/transaction/transaction.ts";
import {
  isSettled,
  TRANSITIONS,
  type TransitionEvent,
  type TransitionRule,
  transition,
} from "../../domain/transaction/transitions.ts";
import type { AlertCode } from "../../domain/troubles/table.ts";
import type { Clock } from "../../ports/clock.ts";
import { type NewCompletion, OutcomeUnknown, type TransitionItem } from "../../ports/lane-store.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";
import type { LanePorts, LaneWriterPorts } from "./lane-ports.ts";
import type { OwnedLane } from "./owned-lane.ts";
import { TermOver } from "./term.ts";
import { establish, type FactCode, happened, type Tracked } from "./tracked.ts";

export type { FeedWriterPorts, LaneWriterPorts } from "./lane-ports.ts";

type Changes = Omit<TransitionItem, "txId" | "event" | "from" | "to" | "subState" | "completion">;

export interface Planned {
  readonly tx: Tracked;
  readonly item: TransitionItem;
}

/**
 * Plans a state change of a transaction by the transition table. Returns the write for the database; the transaction in
 * memory gets the new state at once. A planned change must be committed. Writes of a lane commit in the order of
 * planning, so the next plan may build on this one before it is durable. If a write fails, the whole lane is reloaded.
 */
export function plan(tx: Tracked, event: TransitionEvent, changes: Changes = {}): Planned {
  const from = tx.status;
  const { state: to, subState } = transition(from, event);
  const rule: TransitionRule = TRANSITIONS[event];
  const completion: NewCompletion | undefined = rule.completion && { ...rule.completion, subState, txHash: hashOf(tx) };
  const bare = { txId: tx.txId, event, from: from.state, to, subState, ...changes };
  const item = completion === undefined ? bare : { ...bare, completion };
  tx.stands(stepPlanned, item);
  return { tx, item };
}

/** Hash of the mined payload; if none is mined, of the newest one. */
function hashOf({ receipt, attempts }: Tracked) {
  return receipt?.txHash ?? attempts.at(-1)?.txHash ?? null;
}

/**
 * Maximum number of transitions in one write; more would lock the lane's row for longer than a takeover should wait.
 */
const MOVES_AT_ONCE = 200;

/** Commits planned state changes. Throws `TermOver` if not all were applied, or if the lane's term ended meanwhile. */
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
 * Not an async function. A thousand lanes may wait here with one write each, and each async call would keep a state
 * object that the garbage collector has to copy.
 */
function commitSome(ports: LaneWriterPorts, lane: OwnedLane, planned: readonly Planned[]) {
  if (planned.length === 0) return Promise.resolve();
  for (const { tx, item } of planned) lane.awaitStep(tx, item);
  return lane.term.write({ kind: "transition", items: planned.map(({ item }) => item) }).then(
    ({ items }) => {
      planned.forEach((move, index) => {
        if (items[index] === "applied") reportPlanned(ports, lane, move);
      });
      const at = items.findIndex((result) => result !== "applied");
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

/** Reloads the lane, because memory already has the new state and the database may not have it. */
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

/** Reports a state change that the database has accepted. */
export function reportMove(
  { telemetry, nodeId }: Pick<LaneWriterPorts, "telemetry" | "nodeId">,
  { lane, fence }: OwnedLane,
  move: Omit<Transition, "type" | "lane" | "nodeId" | "token">,
): void {
  telemetry.emit({ type: "tx.transition", lane, ...move, nodeId, token: fence.token });
}

type HoldPorts = Pick<LaneWriterPorts, "clock" | "telemetry">;
type Obstacle = { readonly code: FactCode & AlertCode; readonly text: string };

/** Records why a transaction does not progress, and alerts the first time. */
export function hold(ports: HoldPorts, { lane }: OwnedLane, tx: Tracked, { code, text }: Obstacle): void {
  if (!establish(tx, code, { text, since: ports.clock.now() })) return;
  const message = `nonce ${tx.nonce} of ${lane.signer}: ${text}; it is still tracked and sent`;
  ports.telemetry.emit({ type: "alert", severity: "WARNING", code, message, lane, txId: tx.txId });
}

/** Records that a ceiling lowered the first price of a transaction that was just signed. */
export function holdAtCeiling(ports: HoldPorts, lane: OwnedLane, tx: Tracked, reached: FeeLimit): void {
  const text = `its fee is at ${limitInWords(reached)}, and more was wanted`;
  hold(ports, lane, tx, { code: "FEE_CEILING_REACHED", text });
}

/**
 * Schedules when a lane's owner next checks whether a `validUntil` has passed. Deadlines are in the database's time;
 * this node waits for the remaining time.
 */

/**
 * Starts the expiry checks of a newly acquired lane. Unsigned transactions are in the database, which is queried once.
 */
export function keepTime(lane: OwnedLane, hasUnsigned: boolean, clock: Clock): void {
  if (hasUnsigned) happened(lane, expiryLookDue);
  else for (const tx of lane.unmined.values()) noteTime(lane, tx, clock);
}

/** Schedules the expiry check of a transaction that has a `validUntil`. */
export function noteTime(
  lane: OwnedLane,
  { validUntil }: { readonly validUntil?: Date | null },
  clock: Pick<Clock, "now" | "monotonicMs">,
): void {
  if (validUntil === undefined || validUntil === null) return;
  happened(lane, expiryAhead, clock.monotonicMs(), validUntil.getTime() - clock.now().getTime());
}

/**
 * The receipt with a contract address computed from signer and nonce. An endpoint's address is not used: a caller who
 * trusts a false one might send money to a foreign contract. A reverted deployment has no address, whatever the node
 * reports.
 */
export function withOwnContract(
  { codec }: LanePorts,
  { lane }: OwnedLane,
  { nonce }: Tracked,
  receipt: Receipt,
): Receipt {
  const deployed = receipt.contractAddress !== null && receipt.status === "success";
  const contractAddress = deployed ? codec.contractAddress(lane.signer, nonce) : null;
  return contractAddress === receipt.contractAddress ? receipt : { ...receipt, contractAddress };
}
