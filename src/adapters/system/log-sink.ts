import { isTaken } from "../../domain/answers.ts";
import type { Address, Lane } from "../../domain/lane.ts";
import type { AlertSeverity, TelemetryEvent } from "../../ports/telemetry.ts";
import type { LogFields, Logger, LogMethod } from "./logger.ts";
import type { TelemetrySink } from "./telemetry.ts";

type Type = TelemetryEvent["type"];
type EventOf<T extends Type> = Extract<TelemetryEvent, { readonly type: T }>;

interface Line<T extends Type> {
  readonly level: LogMethod | ((event: EventOf<T>) => LogMethod);
  readonly message: string | ((event: EventOf<T>) => string);
}

const LOCK_STATES = {
  told: "others see the session lock of this process",
  lost: "the session of the lock ended; others go by the heartbeat until there is another",
  pooled:
    "no session lock can be held behind a pooler: without FENCEPOST_DIRECT_DATABASE_URL a crash is seen by the lease",
  unseen:
    "the direct database URL leads to another server: others cannot see the session lock, and go by the heartbeat",
};

/**
 * What each event is worth. Every critical write is a `tx.transition` and is told at info, whole, never sampled; what
 * only repeats it with a measurement (create, submit, allocation, flush) is debug.
 */
const LINES: { readonly [T in Type]: Line<T> } = {
  "instance.registered": { level: "info", message: "instance registered" },
  "instance.lost": { level: "error", message: "this instance is over: its heartbeat came too late; all lanes stop" },
  "instance.lock": {
    level: ({ state }) => (state === "told" ? "debug" : "warn"),
    message: ({ state }) => LOCK_STATES[state],
  },
  "instance.declaredDead": { level: "warn", message: "declared an instance dead" },
  // A node may take thousands at once, and a newcomer's first lines should not be ten of them: `lanes.taken` tells.
  "lease.acquire": { level: "debug", message: (event) => `lease ${event.result}` },
  "lanes.taken": { level: "info", message: ({ acquired, takenOver }) => `took ${lanes(acquired + takenOver)}` },
  "lease.released": { level: "info", message: "lease released" },
  "lease.fenced": {
    level: "warn",
    message: ({ stoppedBy }) =>
      stoppedBy === "database"
        ? "FENCED: another term owns the lane; the write was refused"
        : "FENCED: this node's term is over; the write was not made",
  },
  "lane.resumed": {
    level: ({ tracking, allocated }) => (tracking + allocated > 0 ? "info" : "debug"),
    message: "lane resumed",
  },
  "lane.stopped": { level: "info", message: "lane stopped" },
  "lane.blocked": { level: "warn", message: "the head of the lane is not mined in time, and others wait behind it" },
  "writer.flushed": { level: "debug", message: "writer flushed" },
  "writer.busy": { level: "info", message: "a batch of writes found the database busy, and is tried again" },
  "writer.failed": { level: "warn", message: "a batch of writes failed" },
  "create.answered": { level: "debug", message: (event) => `create ${event.result}` },
  forward: { level: ({ result }) => (result === "failed" ? "warn" : "debug"), message: "create forwarded" },
  "tx.transition": { level: "info", message: (event) => event.event },
  "submit.answered": {
    level: (event) => (isTaken(event.answer) ? "debug" : "warn"),
    message: (event) => `node answered ${event.answer}`,
  },
  "receipt.checked": { level: "debug", message: (event) => `receipts ${event.result}` },
  "confirmations.newFork": { level: "warn", message: "confirmations replaced: the chain changed below them" },
  "chain.head": { level: "debug", message: "new head" },
  "chain.reorg": { level: "warn", message: "the chain reorganised" },
  "chain.gap": { level: "warn", message: "blocks may have been missed; scanning again" },
  "chain.unreachable": { level: "warn", message: "no endpoint of the chain answers" },
  "chain.reachable": { level: "info", message: "the chain answers again" },
  "nonce.allocated": { level: "debug", message: "nonces allocated" },
  "nonce.recycled": { level: "info", message: "a nonce that nothing held is in use again" },
  "nonce.reserved": { level: "debug", message: (event) => `nonce ${event.nonce} ${event.state.toLowerCase()}` },
  "lane.reconciled": {
    level: ({ result }) => (result === "agreed" ? "debug" : "warn"),
    message: ({ result }) => `compared with the chain: ${result}`,
  },
  "gray.zone": { level: "warn", message: ({ result }) => `gray zone: ${result}` },
  "signer.balance": { level: "debug", message: ({ balance }) => `the signer holds ${balance} wei` },
  "nonce.firstCount": {
    level: ({ chainCount }) => (chainCount === 0 ? "debug" : "info"),
    message: ({ chainCount }) => `the signer's first nonce here is ${chainCount}: so many transactions are mined`,
  },
  "nonce.drift": { level: "warn", message: "the chain counts more transactions than were allocated here" },
  "rpc.request": { level: "trace", message: (event) => `${event.method} ${event.result}` },
  "rpc.endpoint": {
    level: ({ state }) => (state === "up" ? "info" : "warn"),
    message: ({ endpoint, state }) => `RPC endpoint ${endpoint + 1} is ${state}`,
  },
  "feed.epochBegun": {
    level: "error",
    message: ({ mayHaveLost }) => `the feed begins a new epoch${mayHaveLost ? ": commits may have been lost" : ""}`,
  },
  "lane.recovered": {
    level: ({ suspendedBy }) => (suspendedBy === null ? "info" : "warn"),
    message: "the lane was compared with the chain after the database's history changed",
  },
  "store.historyChanged": { level: "error", message: "the database's history changed: commits may have been lost" },
  "lane.suspended": {
    level: "warn",
    message: (event) =>
      event.suspended ? "lane suspended: creates wait, nothing is sent" : "lane resumed by an operator",
  },
  "stuck.resolution": {
    level: "info",
    message: (event) => `${event.action} decided: ${event.result}`,
  },
  alert: { level: (event) => ALERT_LEVELS[event.severity], message: (event) => event.message },
};

const ALERT_LEVELS: Readonly<Record<AlertSeverity, LogMethod>> = { WARNING: "warn", ERROR: "error", CRITICAL: "fatal" };

function lanes(count: number): string {
  return count === 1 ? "1 lane" : `${count} lanes`;
}

export interface LogSinkSettings {
  readonly log: Pick<Logger, "log" | "logMembers" | "enabled">;
  readonly nodeId: string;
  /** How an address is written for people; EIP-55 in production. */
  readonly checksum?: (address: Address) => string;
}

export function createLogSink({ log, nodeId, checksum }: LogSinkSettings): TelemetrySink {
  const spell = remember(checksum ?? ((address) => address));
  return (event) => {
    const line = LINES[event.type] as Line<Type>;
    const level = typeof line.level === "function" ? line.level(event) : line.level;
    if (!log.enabled(level)) return;
    const message = typeof line.message === "function" ? line.message(event) : line.message;
    if (event.type === "tx.transition") log.logMembers(level, transitionMembers(event, spell), message);
    else log.log(level, fieldsOf(event, nodeId, spell), message);
  };
}

/** The field names that all log lines share, whatever the event calls them. */
function fieldsOf(event: TelemetryEvent, nodeId: string, spell: (address: Address) => string): LogFields {
  const { type, ...rest } = event;
  const fields: Record<string, unknown> = { event: type, nodeId };
  for (const [key, value] of Object.entries(rest)) {
    if (key === "lane") Object.assign(fields, laneFields(value as Lane, spell));
    else if (key === "token") fields.fencingToken = value;
    else if (key !== "message") fields[key] = value;
  }
  return fields;
}

/**
 * Several of these are written for every transaction, so the JSON is put together by hand: ids, hex, numbers and words of
 * our own, in which nothing is to be escaped and no secret can be.
 */
function transitionMembers(event: EventOf<"tx.transition">, spell: (address: Address) => string): string {
  const { lane, txId, nodeId, token, from, state, subState, nonce, txHash, ageMs } = event;
  const start = `"event":"tx.transition","chainId":${lane.chainId},"signer":"${spell(lane.signer)}","txId":"${txId}"`;
  const term = `"nodeId":${quoted(nodeId)},"fencingToken":${token},"fromState":${quoted(from)},"state":"${state}"`;
  const rest = `"subState":${quoted(subState)},"nonce":${nonce},"txHash":${quoted(txHash)}`;
  return ageMs === undefined ? `${start},${term},${rest}` : `${start},${term},${rest},"ageMs":${ageMs}`;
}

function quoted(word: string | null): string {
  return word === null ? "null" : `"${word}"`;
}

function laneFields(lane: Lane, spell: (address: Address) => string) {
  return { chainId: lane.chainId, signer: spell(lane.signer) };
}

const REMEMBERED_ADDRESSES = 10_000;

/** A checksum costs a hash; a lane is logged many times. */
function remember(spell: (address: Address) => string): (address: Address) => string {
  const known = new Map<Address, string>();
  return (address) => {
    const before = known.get(address);
    if (before !== undefined) return before;
    if (known.size >= REMEMBERED_ADDRESSES) known.clear();
    const spelled = spell(address);
    known.set(address, spelled);
    return spelled;
  };
}
