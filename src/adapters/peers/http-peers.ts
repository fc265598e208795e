/**
 * Implements the Peers port over HTTP. It distinguishes two kinds of failure. A request that certainly never reached
 * the other node's handler may be sent elsewhere. After any other failure, the other node may have acted, and the
 * outcome is unknown.
 */
import { Agent } from "undici";
import {
  PEER_ACTIONS_PATH,
  PEER_BODY_LIMIT_BYTES,
  PEER_CREATES_PATH,
  PEER_KILLS_PATH,
} from "../../contract/peer-wire.ts";
import { BATCH_ITEMS_LIMIT } from "../../contract/schemas/create.ts";
import { FencepostError } from "../../domain/errors.ts";
import { codeOf } from "../../domain/text/thrown.ts";
import type { Clock } from "../../ports/clock.ts";
import { type Peers, PeerUnreachable } from "../../ports/peers.ts";
import type { PeerRefusal, Telemetry } from "../../ports/telemetry.ts";
import { type DirectoryOptions, type PeerDirectory, peerDirectory } from "./directory.ts";
import { peerGate } from "./gate.ts";
import { digestOf, signHead } from "./request-head.ts";
import { mayBeAt } from "./url-patterns.ts";
import { decodeActionResult, decodeResults, encodeAction, encodeCreates, encodeKill, readProblem } from "./wire.ts";

export interface HttpPeersOptions extends DirectoryOptions {
  /** Patterns of the allowed origins of other nodes; null allows any. */
  readonly urlPatterns: readonly string[] | null;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const CLOSED = "this node is shutting down";
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;
const CONNECTIONS_PER_ORIGIN = 32;
const CONNECT_TIMEOUT_MS = 1_000;
const IDLE_MS = 30_000;
/** Statuses that mean that the route does not exist or refused the caller: the handler did not run. */
const TURNED_AWAY: readonly number[] = [401, 403, 404, 405];
/** Error codes that mean that the other node could not parse the request: a retry would fail the same way. */
const UNREADABLE: readonly string[] = ["INVALID_REQUEST", "PAYLOAD_TOO_LARGE"];
/** Error codes that occur only before a connection exists, so the other node did nothing. */
const NEVER_CONNECTED: readonly string[] = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];

export function createHttpPeers(options: HttpPeersOptions) {
  const { clock, telemetry } = options;
  const directory = peerDirectory(options);
  const { exchange, close } = peerRequests(options, directory);

  const create: Peers["create"] = async (url, creates, sending) => {
    const target = targetOf(url, PEER_CREATES_PATH);
    const body = written(() => encodeCreates(creates, sending.repeat));
    if (creates.length > BATCH_ITEMS_LIMIT || Buffer.byteLength(body) > PEER_BODY_LIMIT_BYTES) {
      return creates.length === 1 ? [tooLarge()] : inHalves(url, creates, sending);
    }
    const refusalOrText = await exchange(target, body, sending.withinMs);
    if (refusalOrText instanceof FencepostError) return creates.map(() => refusalOrText);
    return read(target, () => decodeResults(refusalOrText, creates.length));
  };

  /**
   * Sends creates in two halves if they are too large for one request. The halves are sent one after another, because
   * creates of one lane are ordered.
   */
  const inHalves: Peers["create"] = async (url, creates, sending) => {
    const startedMs = clock.monotonicMs();
    const middle = Math.ceil(creates.length / 2);
    const first = await create(url, creates.slice(0, middle), sending);
    const withinMs = sending.withinMs - (clock.monotonicMs() - startedMs);
    try {
      return [...first, ...(await create(url, creates.slice(middle), { ...sending, withinMs }))];
    } catch (cause) {
      if (!(cause instanceof PeerUnreachable)) throw cause;
      throw new PeerUnreachable(`${cause.message}, after a part was answered`, false, { cause });
    }
  };

  return {
    introduce: directory.introduce,
    know: directory.know,
    create,
    close,
    act: async (url, lane, { withinMs, ...request }) => {
      const target = targetOf(url, PEER_ACTIONS_PATH);
      const body = written(() => encodeAction(lane, request));
      const refusalOrText = await exchange(target, body, withinMs);
      if (refusalOrText instanceof FencepostError) return refusalOrText;
      return read(target, () => decodeActionResult(refusalOrText));
    },
    kill: async (url, kill, withinMs) => {
      const refusalOrText = await exchange(targetOf(url, PEER_KILLS_PATH), encodeKill(kill), withinMs);
      if (refusalOrText instanceof FencepostError) throw new PeerUnreachable(refusalOrText.message, true);
    },
    /** Gate that authenticates requests from other nodes. */
    gate: peerGate(directory, telemetry),
  } satisfies Peers & { readonly gate: unknown };
}

/**
 * Settings of keep-alive connections, pooled by origin. An origin is dropped when its last connection was idle too
 * long. After the connection is made, one deadline of the Clock port covers waiting and reading; undici's own timeouts
 * are off.
 */
const CONNECTIONS = {
  connections: CONNECTIONS_PER_ORIGIN,
  pipelining: 1,
  maxResponseSize: MAX_RESPONSE_BYTES,
  keepAliveMaxTimeout: IDLE_MS,
  headersTimeout: 0,
  bodyTimeout: 0,
  connect: { timeout: CONNECT_TIMEOUT_MS },
};

function peerRequests({ clock, telemetry, keys, urlPatterns }: HttpPeersOptions, directory: PeerDirectory) {
  const agent = new Agent(CONNECTIONS);
  const underWay = new Set<AbortController>();
  let closed = false;
  /** Number of the last request; every request gets its own number. */
  let number = 0;

  const refused = (reason: PeerRefusal, url: string) => {
    telemetry.emit({ type: "peer.refused", reason });
    return new PeerUnreachable(`nothing is sent to ${url}: it is not known to be a node of ours`, true);
  };

  /** Signs a request. Requests are sent only to a live, proven instance of this database. */
  const signed = async ({ url, route }: Target, body: string) => {
    const to = await directory.at(url).catch((cause: unknown) => {
      throw new PeerUnreachable("the other nodes cannot be read", true, { cause });
    });
    const from = directory.self();
    if (to === null || from === null) throw new PeerUnreachable(`no live node is known at ${url}`, true);
    if (to.key === null) throw new PeerUnreachable(`the node at ${url} is of a release before keys: upgrade it`, true);
    if (!to.isVouchedFor) throw refused("secret", url);
    const ends = { from: from.instanceId, to: to.instanceId, heartbeat: from.heartbeat };
    return signHead(route, { ...ends, number: ++number, digest: digestOf(body) }, keys.privateKey);
  };

  const post = async ({ origin, path }: Target, authorization: string, body: string, withinMs: number) => {
    if (closed) throw new PeerUnreachable(CLOSED, true);
    const deadline = new AbortController();
    const { signal } = deadline;
    underWay.add(deadline);
    const cancelTimer = clock.after(Math.max(0, withinMs), () => deadline.abort());
    const headers = { authorization, "content-type": "application/json", accept: "application/json" };
    try {
      const response = await agent.request({ origin, method: "POST", path, headers, body, signal });
      return { status: response.statusCode, text: await response.body.text() };
    } catch (cause) {
      const lateness = closed ? CLOSED : `nothing within ${Math.round(withinMs)} ms`;
      const why = signal.aborted ? lateness : (codeOf(cause) ?? String(cause));
      throw new PeerUnreachable(`no answer from ${origin} (${why})`, !signal.aborted && neverConnected(cause), {
        cause,
      });
    } finally {
      cancelTimer();
      underWay.delete(deadline);
    }
  };

  return {
    /** Sends a request; returns the text of the response, or a refusal of the whole request. */
    exchange: async (target: Target, body: string, withinMs: number) => {
      if (!mayBeAt(target.origin, urlPatterns)) throw refused("url", target.url);
      const { status, text } = await post(target, await signed(target, body), body, withinMs);
      return status === 200 ? text : refusalIn(target, status, text);
    },
    close: async () => {
      closed = true;
      for (const each of underWay) each.abort();
      await agent.destroy();
    },
  };
}

function refusalIn({ origin }: Target, status: number, text: string) {
  const problem = readProblem(text);
  if (problem !== null && UNREADABLE.includes(problem.code) && problem.status === status) return problem;
  // Classifies a refusal. Once the handler has accepted the creates, the status is 200 and each create has its own
  // result. So a node that is starting, or that refused the caller, has done nothing.
  const isStarting = status === 503 && problem?.code === "UNAVAILABLE";
  throw new PeerUnreachable(`${origin} answered HTTP ${status}`, isStarting || TURNED_AWAY.includes(status));
}

interface Target {
  readonly url: string;
  readonly origin: string;
  readonly route: string;
  /** Path of the route, below the path of the node's URL. */
  readonly path: string;
}

function targetOf(url: string, route: string): Target {
  return orUnreachable("the node advertises no URL that can be reached", true, () => {
    const { origin, pathname, protocol } = new URL(url);
    if (protocol !== "http:" && protocol !== "https:")
      throw new TypeError(`the URL's protocol is ${protocol}, not http: or https:`);
    return { url, origin, route, path: `${pathname.replace(/\/+$/, "")}${route}` };
  });
}

/** Encodes a request. Objects of an embedding process may be circular, which JSON cannot express. */
function written(encode: () => string) {
  return orUnreachable("the request cannot be written as JSON", true, encode);
}

function orUnreachable<T>(message: string, neverSent: boolean, act: () => T) {
  try {
    return act();
  } catch (cause) {
    throw new PeerUnreachable(message, neverSent, { cause });
  }
}

function tooLarge() {
  const limitMiB = PEER_BODY_LIMIT_BYTES / 1024 / 1024;
  return new FencepostError("PAYLOAD_TOO_LARGE", `the request exceeds ${limitMiB} MiB when forwarded to the owner`);
}

function read<T>({ origin }: Target, decode: () => T) {
  return orUnreachable(`${origin} answered, but with something else`, false, decode);
}

/** True if no connection was made. A host name with several addresses has one error for each address. */
function neverConnected(cause: unknown) {
  if (cause instanceof AggregateError && cause.errors.length > 0) return cause.errors.every(neverConnected);
  const { syscall } = Object(cause) as { syscall?: unknown };
  return NEVER_CONNECTED.includes(codeOf(cause) ?? "") || syscall === "connect";
}
