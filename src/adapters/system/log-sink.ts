import { isTaken } from "../../domain/chain/answers.ts";
import type { Lane } from "../../domain/lane.ts";
import { type Checksum, rememberingChecksum } from "../../domain/text/checksum.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AlertSeverity, PeerRefusal, TelemetryEvent } from "../../ports/telemetry.ts";
import { type LeftOut, lineLimit } from "./line-limit.ts";
import type { LogFields, Logger, LogMethod } from "./logger.ts";
import type { TelemetrySink } from "./telemetry.ts";

type Type = TelemetryEvent["type"];
type EventOf<T extends Type> = Extract<TelemetryEvent, { readonly type: T }>;

type Line<T extends Type> = readonly [
  level: LogMethod | ((event: EventOf<T>) => LogMethod),
  message: string | ((event: EventOf<T>) => string),
  storms?: typeof STORMS,
];

/**
 * Events that occur once per transaction or lane while a chain, a database or a node is down. The first events of a
 * kind are logged, the others only counted (line-limit.ts). Committed writes (`tx.transition`) are never in this list.
 */
const STORMS = "storms";

const LOCK_STATES = {
  told: "other nodes see the session lock of this process",
  lost: "the session of the lock ended; other nodes use the heartbeat until there is a new one",
  pooled:
    "no session lock is possible behind a pooler: without FENCEPOST_DIRECT_DATABASE_URL a crash is noticed by the lease",
  unseen:
    "the direct database URL leads to another server: other nodes cannot see the session lock and use the heartbeat",
};

const PEER_REFUSALS: { readonly [R in PeerRefusal]: string } = {
  unreadable: "it is not signed in the format of nodes",
  receiver: "it is for another process",
  sender: "its sender is not a live instance with a key",
  secret: "no FENCEPOST_CLUSTER_SECRET of this node proves the key of the other",
  signature: "it is not signed by its sender",
  stale: "it is too late",
  replayed: "it was received before",
  body: "its body is not the signed one",
  url: "the other node advertises a URL that FENCEPOST_PEER_URL_PATTERN does not allow",
};

/**
 * Log level and message of each event. Every critical write is a `tx.transition`, logged at info, complete and never
 * sampled. Events that only add a measurement to it (create, submit, allocation, flush) are debug.
 */
const LINES: { readonly [T in Type]: Line<T> } = {
  "instance.registered": ["info", "instance registered"],
  "instance.lost": ["error", "this instance has ended: its heartbeat came too late; all lanes stop"],
  "instance.lock": [({ state }) => (state === "told" ? "debug" : "warn"), ({ state }) => LOCK_STATES[state]],
  "instance.declaredDead": ["warn", "declared an instance dead"],
  "chain.adopted": [
    "warn",
    ({ chainId }) =>
      `the RPC endpoint reports chain ${chainId}, and this database is bound to it from now on; set FENCEPOST_CHAIN_ID to name it yourself`,
  ],
  // Log a lane's acquisition at debug, because a node may acquire thousands of lanes at once; `lanes.taken` summarises
  // them.
  "lease.acquire": ["debug", (event) => `lease ${event.result}`],
  "lanes.taken": ["info", ({ acquired, takenOver }) => `took ${lanes(acquired + takenOver)}`],
  "lease.released": ["info", "lease released", STORMS],
  "lease.fenced": [
    "warn",
    ({ stoppedBy }) =>
      stoppedBy === "database"
        ? "FENCED: another term owns the lane; the write was refused"
        : "FENCED: this node's term is over; the write was not made",
    STORMS,
  ],
  "lane.resumed": [({ tracking, allocated }) => (tracking + allocated > 0 ? "info" : "debug"), "lane resumed", STORMS],
  "lane.stopped": ["info", "lane stopped", STORMS],
  "lane.blocked": ["warn", "the head of the lane was not mined in time, and others wait behind it"],
  "writer.flushed": ["debug", "writer flushed"],
  "writer.busy": ["info", "a batch of writes found the database busy, and is retried", STORMS],
  "writer.failed": ["warn", "a batch of writes failed", STORMS],
  "create.answered": ["debug", (event) => `create ${event.result}`],
  forward: [({ result }) => (result === "failed" ? "warn" : "debug"), "create forwarded", STORMS],
  // Log level debug for requests of unauthenticated callers, who could otherwise fill the log; the metric counts them.
  "peer.refused": [
    ({ reason }) => (reason === "secret" || reason === "url" ? "warn" : "debug"),
    ({ reason }) => `a request between nodes was refused: ${PEER_REFUSALS[reason]}`,
    STORMS,
  ],
  "tx.transition": ["info", (event) => event.event],
  "submit.answered": [
    (event) => (isTaken(event.answer) ? "debug" : "warn"),
    (event) => `node answered ${event.answer}`,
    STORMS,
  ],
  "receipt.checked": ["debug", (event) => `receipts ${event.result}`],
  "confirmations.newFork": ["warn", "confirmations replaced: the chain changed below them"],
  "chain.head": ["debug", "new head"],
  "chain.reorg": ["warn", "the chain reorganised"],
  "chain.gap": ["warn", "blocks may have been missed; scanning again", STORMS],
  "chain.unreachable": ["warn", "no endpoint of the chain answers"],
  "chain.reachable": ["info", "the chain answers again"],
  "nonce.allocated": ["debug", "nonces allocated"],
  "nonce.recycled": ["info", "a free nonce below the cursor is in use again"],
  "nonce.reserved": ["info", (event) => `nonce ${event.nonce} ${event.state.toLowerCase()}`],
  "message.answered": ["info", ({ kind, result }) => `${kind} message ${result}`],
  "lane.reconciled": [
    ({ result }) => (result === "agreed" ? "debug" : "warn"),
    ({ result }) => `compared with the chain: ${result}`,
    STORMS,
  ],
  "gray.zone": ["warn", ({ result }) => `gray zone: ${result}`],
  "signer.balance": ["debug", ({ balance }) => `the signer holds ${balance} wei`],
  "nonce.firstCount": [
    ({ chainCount }) => (chainCount === 0 ? "debug" : "info"),
    ({ chainCount }) => `the signer's first nonce here is ${chainCount}, the number of its mined transactions`,
  ],
  "nonce.drift": ["warn", "the chain counts more transactions than were allocated here"],
  "rpc.request": ["trace", (event) => `${event.method} ${event.result}`],
  "rpc.endpoint": [
    ({ state }) => (state === "up" ? "info" : "warn"),
    ({ endpoint, state }) => `RPC endpoint ${endpoint + 1} is ${state}`,
  ],
  "feed.epochBegun": [
    "error",
    ({ mayHaveLost }) => `the feed begins a new epoch${mayHaveLost ? ": commits may have been lost" : ""}`,
  ],
  "retention.round": [
    ({ transactions, completions, requestIds }) => (transactions + completions + requestIds > 0 ? "info" : "debug"),
    ({ transactions, completions }) =>
      `retention: ${transactions} transactions and ${completions} completions were deleted`,
  ],
  "lane.recovered": [
    ({ suspendedBy }) => (suspendedBy === null ? "info" : "warn"),
    "the lane was compared with the chain after the database's history changed",
  ],
  "store.historyChanged": ["error", "the database's history changed: commits may have been lost"],
  "lane.suspended": [
    "warn",
    (event) => (event.suspended ? "lane suspended: creates wait, nothing is sent" : "lane resumed by an operator"),
  ],
  "lane.realigned": ["warn", ({ cursor }) => `an operator set the next nonce of the lane to ${cursor}`],
  "stuck.resolution": ["info", (event) => `${event.action} decided: ${event.result}`],
  "webhook.taken": ["info", ({ subscriber }) => `delivers the webhooks of ${subscriber}`, STORMS],
  "webhook.fenced": ["info", "another term delivers for the subscriber, or it was changed; nothing was stored", STORMS],
  "webhook.answered": [
    ({ result }) => (result === "delivered" ? "debug" : "info"),
    ({ result }) => `webhook ${result}`,
    STORMS,
  ],
  alert: [(event) => ALERT_LEVELS[event.severity], (event) => event.message],
  "alert.renewed": ["trace", (event) => `goes on: ${event.message}`],
  "alert.resolved": ["info", (event) => `over: ${event.message}`],
};

const ALERT_LEVELS: Readonly<Record<AlertSeverity, LogMethod>> = { WARNING: "warn", ERROR: "error", CRITICAL: "fatal" };

function lanes(count: number) {
  return count === 1 ? "1 lane" : `${count} lanes`;
}

interface LogSinkSettings {
  readonly log: Pick<Logger, "log" | "logMembers" | "enabled">;
  readonly nodeId: string;
  readonly checksum?: Checksum;
  /** Clock for limiting repeated lines; if absent, every line is written. */
  readonly clock?: Pick<Clock, "after">;
}

export function createLogSink({ log, nodeId, checksum, clock }: LogSinkSettings): TelemetrySink {
  const sayHowMany = ({ event, level, message, times }: LeftOut) =>
    log.log(level, { event, nodeId, times }, `${message} (${times} more like this in ten seconds)`);
  const isOneTooMany = clock === undefined ? () => false : lineLimit(clock, sayHowMany);
  const spell = rememberingChecksum(checksum ?? ((address) => address));
  return (event) => {
    const [levelOf, messageOf, storms] = LINES[event.type] as Line<Type>;
    const level = typeof levelOf === "function" ? levelOf(event) : levelOf;
    if (!log.enabled(level)) return;
    const message = typeof messageOf === "function" ? messageOf(event) : messageOf;
    if (storms && isOneTooMany({ event: event.type, level, message })) return;
    if (event.type === "tx.transition") log.logMembers(level, transitionMembers(event, spell), message);
    else log.log(level, fieldsOf(event, nodeId, spell), message);
  };
}

type Renamed = { readonly lane?: Lane; readonly token?: number | null; readonly message?: string };

/** Fields of an event under the names that all log lines share; some events use other names. */
function fieldsOf(event: TelemetryEvent, nodeId: string, spell: Checksum): LogFields {
  const { type, lane, token, message: _, ...rest } = event as TelemetryEvent & Renamed;
  const ofLane = lane && { chainId: lane.chainId, signer: spell(lane.signer) };
  return { event: type, nodeId, ...ofLane, ...(token === undefined ? {} : { fencingToken: token }), ...rest };
}

/**
 * Builds the JSON of a transition by hand, because several such lines are written per transaction. The values are ids,
 * hex, numbers and constants, which need no escaping and contain no secret.
 */
function transitionMembers(event: EventOf<"tx.transition">, spell: Checksum) {
  const { lane, txId, nodeId, token, from, state, subState, nonce, txHash, ageMs } = event;
  const start = `"event":"tx.transition","chainId":${lane.chainId},"signer":"${spell(lane.signer)}","txId":"${txId}"`;
  const term = `"nodeId":${quoted(nodeId)},"fencingToken":${token},"fromState":${quoted(from)},"state":"${state}"`;
  const rest = `"subState":${quoted(subState)},"nonce":${nonce},"txHash":${quoted(txHash)}`;
  return ageMs === undefined ? `${start},${term},${rest}` : `${start},${term},${rest},"ageMs":${ageMs}`;
}

function quoted(word: string | null) {
  return word === null ? "null" : `"${word}"`;
}
