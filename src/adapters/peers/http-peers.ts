/**
 * The Peers port over HTTP. It distinguishes two kinds of failure. A request that certainly never reached the other
 * node's handler may be sent elsewhere. After any other failure the node may have acted, and the outcome is unknown.
 */
import { Agent } from "undici";
import {
  PEER_ACTIONS_PATH,
  PEER_BODY_LIMIT_BYTES,
  PEER_CREATES_PATH,
  PEER_KILLS_PATH,
} from "../../contract/peer-wire.ts";
import { BATCH_ITEMS_LIMIT } from "../../contract/schemas/create.ts";
import type { Kill } from "../../domain/cluster/kills.ts";
import { FencepostError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import { codeOf } from "../../domain/text/thrown.ts";
import type { Clock } from "../../ports/clock.ts";
import type { InstanceKey, InstanceRecord } from "../../ports/lease-store.ts";
import {
  type ForwardedAnswer,
  type ForwardedCreate,
  type LaneAnswer,
  type Peers,
  PeerUnreachable,
  type Sending,
} from "../../ports/peers.ts";
import type { PeerRefusal, Telemetry } from "../../ports/telemetry.ts";
import { type DirectoryOptions, PeerDirectory } from "./directory.ts";
import { PeerGate } from "./gate.ts";
import { digestOf, signHead } from "./request-head.ts";
import { mayBeAt } from "./url-patterns.ts";
import { decodeActionResult, decodeResults, encodeAction, encodeCreates, encodeKill, readProblem } from "./wire.ts";

export interface HttpPeersOptions extends DirectoryOptions {
  /** Allowed origins of other nodes; null: any. */
  readonly urlPatterns: readonly string[] | null;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

type LaneTelling = Parameters<Peers["act"]>[2];
type Results = readonly (ForwardedAnswer | FencepostError)[];

const CLOSED = "this node is shutting down";
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;
const CONNECTIONS_PER_ORIGIN = 32;
const CONNECT_TIMEOUT_MS = 1_000;
const IDLE_MS = 30_000;
/** The route does not exist or refused the caller: the handler did not run. */
const TURNED_AWAY: readonly number[] = [401, 403, 404, 405];
/** The node could not parse the request: a retry would fail the same way. */
const UNREADABLE: readonly string[] = ["INVALID_REQUEST", "PAYLOAD_TOO_LARGE"];
/** Errors that occur only before a connection exists. */
const NEVER_CONNECTED: readonly string[] = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];

export function createHttpPeers(options: HttpPeersOptions): HttpPeers {
  return new HttpPeers(options);
}

class HttpPeers implements Peers {
  /** Checks requests that other nodes send to this one. */
  readonly gate: PeerGate;
  private readonly options: HttpPeersOptions;
  private readonly directory: PeerDirectory;
  /** Keep-alive connections by origin. An origin is dropped when its last connection was idle too long. */
  private readonly agent = new Agent({
    connections: CONNECTIONS_PER_ORIGIN,
    pipelining: 1,
    maxResponseSize: MAX_RESPONSE_BYTES,
    keepAliveMaxTimeout: IDLE_MS,
    // After the connection is made, one deadline of the Clock port covers waiting and reading; undici's own timeouts
    // are off.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_TIMEOUT_MS },
  });
  private readonly underWay = new Set<AbortController>();
  /** Number of the last request; each request has its own. */
  private number = 0;
  private closed = false;

  constructor(options: HttpPeersOptions) {
    this.options = options;
    this.directory = new PeerDirectory(options);
    this.gate = new PeerGate(this.directory, options.telemetry);
  }

  introduce(instanceId: string, url: string): InstanceKey {
    return this.directory.introduce(instanceId, url);
  }

  know(instances: readonly InstanceRecord[]): void {
    this.directory.know(instances);
  }

  async create(url: string, creates: readonly ForwardedCreate[], sending: Sending): Promise<Results> {
    const target = targetOf(url, PEER_CREATES_PATH);
    const body = written(() => encodeCreates(creates, sending.repeat));
    if (creates.length > BATCH_ITEMS_LIMIT || Buffer.byteLength(body) > PEER_BODY_LIMIT_BYTES) {
      return creates.length === 1 ? [tooLarge()] : this.inHalves(url, creates, sending);
    }
    const refusalOrText = await this.exchange(target, body, sending.withinMs);
    if (refusalOrText instanceof FencepostError) return creates.map(() => refusalOrText);
    return read(target, () => decodeResults(refusalOrText, creates.length));
  }

  async act(url: string, lane: Lane, { withinMs, ...request }: LaneTelling): Promise<LaneAnswer | FencepostError> {
    const target = targetOf(url, PEER_ACTIONS_PATH);
    const body = written(() => encodeAction(lane, request));
    const refusalOrText = await this.exchange(target, body, withinMs);
    if (refusalOrText instanceof FencepostError) return refusalOrText;
    return read(target, () => decodeActionResult(refusalOrText));
  }

  async kill(url: string, kill: Kill, withinMs: number): Promise<void> {
    const refusalOrText = await this.exchange(targetOf(url, PEER_KILLS_PATH), encodeKill(kill), withinMs);
    if (refusalOrText instanceof FencepostError) throw new PeerUnreachable(refusalOrText.message, true);
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const each of this.underWay) each.abort();
    await this.agent.destroy();
  }

  /**
   * Splits creates that are too large for one request. The halves are sent one after another, because creates of one
   * lane are ordered.
   */
  private async inHalves(url: string, creates: readonly ForwardedCreate[], sending: Sending): Promise<Results> {
    const { clock } = this.options;
    const startedMs = clock.monotonicMs();
    const middle = Math.ceil(creates.length / 2);
    const first = await this.create(url, creates.slice(0, middle), sending);
    const leftMs = sending.withinMs - (clock.monotonicMs() - startedMs);
    try {
      return [...first, ...(await this.create(url, creates.slice(middle), { ...sending, withinMs: leftMs }))];
    } catch (cause) {
      if (!(cause instanceof PeerUnreachable)) throw cause;
      throw new PeerUnreachable(`${cause.message}, after a part was answered`, false, { cause });
    }
  }

  /** Signs the request. Requests go only to a live, proven instance of this database. */
  private async signed({ url, route }: Target, body: string): Promise<string> {
    const to = await this.directory.at(url).catch((cause: unknown) => {
      throw new PeerUnreachable("the other nodes cannot be read", true, { cause });
    });
    const from = this.directory.self;
    if (to === null || from === null) throw new PeerUnreachable(`no live node is known at ${url}`, true);
    if (to.key === null) throw new PeerUnreachable(`the node at ${url} is of a release before keys: upgrade it`, true);
    if (!to.isVouchedFor) throw this.refused("secret", url);
    const number = ++this.number;
    const ends = { from: from.instanceId, to: to.instanceId, heartbeat: from.heartbeat };
    return signHead(route, { ...ends, number, digest: digestOf(body) }, this.options.keys.privateKey);
  }

  private refused(reason: PeerRefusal, url: string): PeerUnreachable {
    this.options.telemetry.emit({ type: "peer.refused", reason });
    return new PeerUnreachable(`nothing is sent to ${url}: it is not known to be a node of ours`, true);
  }

  /** The text of the answer, or a refusal of the whole request. */
  private async exchange(target: Target, body: string, withinMs: number): Promise<string | FencepostError> {
    if (!mayBeAt(target.origin, this.options.urlPatterns)) throw this.refused("url", target.url);
    const authorization = await this.signed(target, body);
    const { status, text } = await this.post(target, authorization, body, withinMs);
    if (status === 200) return text;
    const problem = readProblem(text);
    if (problem !== null && UNREADABLE.includes(problem.code) && problem.status === status) return problem;
    // Once the handler has the creates, the status is 200 and each create has its own answer. So a node that is
    // starting, or that refused the caller, has done nothing.
    const isStarting = status === 503 && problem?.code === "UNAVAILABLE";
    const neverHandled = isStarting || TURNED_AWAY.includes(status);
    throw new PeerUnreachable(`${target.origin} answered HTTP ${status}`, neverHandled);
  }

  private async post({ origin, path }: Target, authorization: string, body: string, withinMs: number) {
    if (this.closed) throw new PeerUnreachable(CLOSED, true);
    const deadline = new AbortController();
    this.underWay.add(deadline);
    const cancelTimer = this.options.clock.after(Math.max(0, withinMs), () => deadline.abort());
    const headers = { authorization, "content-type": "application/json", accept: "application/json" };
    try {
      const { signal } = deadline;
      const response = await this.agent.request({ origin, method: "POST", path, headers, body, signal });
      return { status: response.statusCode, text: await response.body.text() };
    } catch (cause) {
      const lateness = this.closed ? CLOSED : `nothing within ${Math.round(withinMs)} ms`;
      const why = deadline.signal.aborted ? lateness : (codeOf(cause) ?? String(cause));
      const neverSent = !deadline.signal.aborted && neverConnected(cause);
      throw new PeerUnreachable(`no answer from ${origin} (${why})`, neverSent, { cause });
    } finally {
      cancelTimer();
      this.underWay.delete(deadline);
    }
  }
}

interface Target {
  readonly url: string;
  readonly origin: string;
  readonly route: string;
  /** The route, below the path of the node's URL. */
  readonly path: string;
}

function targetOf(url: string, route: string): Target {
  return orUnreachable("the node advertises no URL that can be reached", true, () => {
    const { origin, pathname, protocol } = new URL(url);
    if (protocol !== "http:" && protocol !== "https:") throw new TypeError(`${protocol} is not HTTP`);
    return { url, origin, route, path: `${pathname.replace(/\/+$/, "")}${route}` };
  });
}

/** Objects of an embedding process may be circular, which JSON cannot express. */
function written(encode: () => string): string {
  return orUnreachable("the request cannot be written as JSON", true, encode);
}

function orUnreachable<T>(message: string, neverSent: boolean, act: () => T): T {
  try {
    return act();
  } catch (cause) {
    throw new PeerUnreachable(message, neverSent, { cause });
  }
}

function tooLarge(): FencepostError {
  const limitMiB = PEER_BODY_LIMIT_BYTES / 1024 / 1024;
  return new FencepostError("PAYLOAD_TOO_LARGE", `forwarded, this is more than ${limitMiB} MiB`);
}

function read<T>({ origin }: Target, decode: () => T): T {
  return orUnreachable(`${origin} answered, but with something else`, false, decode);
}

/** A host name with several addresses fails once for each. */
function neverConnected(cause: unknown): boolean {
  if (cause instanceof AggregateError && cause.errors.length > 0) return cause.errors.every(neverConnected);
  const { syscall } = Object(cause) as { readonly syscall?: unknown };
  return NEVER_CONNECTED.includes(codeOf(cause) ?? "") || syscall === "connect";
}
