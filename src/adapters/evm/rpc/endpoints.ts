import type { Hash } from "../../../domain/lane.ts";
import { type BackoffRule, backoffMs } from "../../../domain/pace/when.ts";
import type { AlertCode } from "../../../domain/troubles/table.ts";
import {
  type BlockTag,
  type ChainIdentity,
  ChainUnavailable,
  type EndpointAnswer,
  type EndpointHealth,
} from "../../../ports/chain.ts";
import type { Entropy } from "../../../ports/entropy.ts";
import type { AlertSeverity, EndpointState, Telemetry } from "../../../ports/telemetry.ts";
import { COMPARE_EVERY_MS, HeadWatch } from "./head-watch.ts";
import { fetchBlockNumber, fetchBlocks, fetchChainId, fetchIdentity } from "./read-block.ts";
import { BadAnswer, RpcErrorAnswer, RpcUnreachable, saysOverLimit, type UnreachableKind } from "./rpc-errors.ts";
import { type SendRule, sendRuleOf, withoutSendRule } from "./send-rule.ts";
import { createTransport, type RpcTransport, type TransportOptions } from "./transport.ts";

export interface EndpointsOptions extends Pick<TransportOptions, "clock" | "timeoutMs" | "requestEveryMs" | "mask"> {
  /** URLs in order of preference. User and password in a URL are sent as basic authentication. */
  readonly urls: readonly string[];
  readonly chainId: number;
  readonly telemetry: Telemetry;
  readonly entropy: Entropy;
}

/**
 * A request to one endpoint. If it throws `RpcUnreachable`, `RpcErrorAnswer` or `BadAnswer`, the next endpoint is
 * asked.
 */
export type Ask<T> = (rpc: RpcTransport, endpoint: Endpoint) => Promise<T>;

/** The answer of one endpoint, with the endpoint's label. */
export interface Said<T> {
  readonly label: string;
  readonly answer: T;
}

const PROBE_AGAIN: BackoffRule = { firstMs: 1_000, mostMs: 30_000 };

/**
 * The endpoints of one chain, in order of preference. An endpoint that keeps failing is skipped and probed in the
 * background, with back-off. One that falls behind the others is skipped until it catches up (head-watch.ts). One that
 * serves another chain is never used. If none is known to be up, all are tried: a wrong opinion about health may cost
 * time, but not reachability.
 */
export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #all: readonly Endpoint[];
  readonly #heads: HeadWatch<Endpoint>;
  /** Genesis hash of the chain. */
  #genesisHash: Hash | null = null;
  /** Monotonic time of the next comparison; null while one is running. */
  #compareAtMs: number | null;

  constructor(options: EndpointsOptions) {
    const { telemetry, chainId } = options;
    this.#options = options;
    this.#compareAtMs = options.clock.monotonicMs() + COMPARE_EVERY_MS;
    this.#heads = new HeadWatch({
      clock: options.clock,
      blockNumber: async (endpoint) => {
        endpoint.head = await this.askOne(endpoint, fetchBlockNumber).catch(() => null);
        return endpoint.head;
      },
      headers: (endpoint, numbers) => this.askOne(endpoint, (rpc) => fetchBlocks(rpc, numbers)).catch(() => null),
      onBehind: (endpoint, { head, ahead }) => {
        const message = `${endpoint.rpc.label} is at block ${head}, and others have had block ${ahead} for a minute: it is skipped until it has caught up`;
        this.#alert(endpoint, "WARNING", "RPC_BEHIND", message);
      },
    });
    this.#all = options.urls.map((url, index) => {
      const report: TransportOptions["report"] = (each) =>
        telemetry.emit({ type: "rpc.request", chainId, endpoint: index, ...each });
      const onDisconnect = () => endpoint.proveAgain();
      const transport = createTransport({ ...options, url: withoutSendRule(url), report, onDisconnect });
      const endpoint = new Endpoint(index, transport, sendRuleOf(url) ?? "yes");
      return endpoint;
    });
  }

  get size(): number {
    return this.#all.length;
  }

  /** State of each endpoint. Sends no request. */
  health(): readonly EndpointHealth[] {
    const highest = Math.max(...this.#all.map(({ head }) => head ?? 0));
    return this.#all.map(({ rpc, reported, head }) => {
      return { url: rpc.label, status: reported ?? "unknown", behind: head === null ? null : highest - head };
    });
  }

  /** The answer of the first endpoint that gives one. */
  async read<T>(ask: Ask<T>): Promise<T> {
    return this.#firstAnswer(this.usable(), ask);
  }

  /**
   * Implements `Chain.identity`. From now on an endpoint that comes back must have this genesis hash. If every endpoint
   * serves another chain, one of them is asked which.
   */
  async identity(genesisHash: Hash | null): Promise<ChainIdentity> {
    this.#genesisHash ??= genesisHash;
    const ours = this.usable();
    for (const { rpc } of ours.length > 0 ? [] : this.#all) {
      const identity = await fetchIdentity(rpc).catch(() => null);
      if (identity !== null) return identity;
    }
    return this.#firstAnswer(ours, async (rpc, endpoint) => {
      const identity = await fetchIdentity(rpc);
      // The URL leads to another machine now: its chain is checked before it is used again.
      if (identity.chainId !== this.#options.chainId) endpoint.proveAgain();
      return identity;
    });
  }

  /**
   * Answers of all endpoints that are up, asked at the same time. One that fails now is "silent", which is no opinion.
   * One that has been down is not asked: otherwise a dead spare would delay every decision. Throws `ChainUnavailable`
   * if none answers. Empty if none serves this chain.
   */
  async readEverywhere<T>(ask: Ask<T>): Promise<readonly EndpointAnswer<T>[]> {
    const asked = this.usable();
    // State before this reading: an endpoint that fails now is silent in this reading, and absent from the next one at
    // the earliest.
    const up = new Set(asked.filter((endpoint) => !endpoint.down));
    const reasons: string[] = [];
    const said = await Promise.all(
      asked.map(async (endpoint): Promise<EndpointAnswer<T> | null> => {
        const said = await this.tryOne(endpoint, ask, reasons);
        if (said !== null) return { kind: "says", answer: said.answer };
        return up.has(endpoint) && endpoint.chain !== "foreign" ? { kind: "silent" } : null;
      }),
    );
    const ours = asked.filter(({ chain }) => chain !== "foreign");
    const opinions = said.filter((each) => each !== null);
    if (ours.length > 0 && !opinions.some(({ kind }) => kind === "says"))
      throw new ChainUnavailable(reasons.join("; "));
    return opinions;
  }

  /**
   * Answers of the endpoints that are up: two at the same time, then one by one until `isEnough`. Null if fewer than
   * two are up. Throws if an endpoint did not answer and its vote could still change the result.
   */
  async readEach<T>(ask: Ask<T>, isEnough: (said: readonly Said<T>[]) => boolean): Promise<readonly Said<T>[] | null> {
    const up = this.usable().filter((each) => !each.down);
    if (up.length < 2) return null;
    const said: Said<T>[] = [];
    const silent: string[] = [];
    for (const asked of [up.slice(0, 2), ...up.slice(2).map((each) => [each])]) {
      const answers = await Promise.all(asked.map((each) => this.tryOne(each, ask, silent)));
      said.push(...answers.filter((each) => each !== null));
      if (isEnough(said)) return said;
    }
    if (silent.length > 0) throw new ChainUnavailable(silent.join("; "));
    return said;
  }

  /** Asks one endpoint after its chain check, and records its health. */
  async askOne<T>(endpoint: Endpoint, ask: Ask<T>): Promise<T> {
    const ticket = ++endpoint.asked;
    let isProven = false;
    try {
      if (endpoint.chain !== "proven") await this.#proveChain(endpoint);
      isProven = true;
      const answer = await ask(endpoint.rpc, endpoint);
      endpoint.failures = 0;
      endpoint.probeAtMs = 0;
      return answer;
    } catch (error) {
      if (isEndpointTrouble(error)) this.#failed(endpoint, error, ticket, isProven);
      throw error;
    } finally {
      this.#reportState(endpoint);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((endpoint) => endpoint.rpc.close()));
  }

  /** Every endpoint that is up; all of this chain if none is known to be up. */
  usable(among = this.#all): readonly Endpoint[] {
    const ours = among.filter((endpoint) => endpoint.chain !== "foreign");
    const up = ours.filter((endpoint) => !endpoint.down);
    const nowMs = this.#options.clock.monotonicMs();
    for (const endpoint of this.#all) {
      if (endpoint.lost && !endpoint.probing && nowMs >= endpoint.probeAtMs) void this.#probe(endpoint);
    }
    const isDue = this.#compareAtMs !== null && nowMs >= this.#compareAtMs;
    if (this.#all.length > 1 && isDue) void this.#compareHeads();
    return up.length > 0 ? up : ours;
  }

  /** Endpoints that may be given a transaction: only private ones, or every one that takes sends. */
  senders(privately: boolean): readonly Endpoint[] {
    return this.usable(this.#all.filter(({ send }) => (privately ? send === "only" : send !== "never")));
  }

  /** If there are private endpoints, a transaction goes only to them until it is disclosed. */
  get privateEndpoints(): readonly string[] {
    return this.#all.filter(({ send }) => send === "only").map(({ rpc }) => rpc.label);
  }

  async #firstAnswer<T>(candidates: readonly Endpoint[], ask: Ask<T>): Promise<T> {
    const reasons: string[] = [];
    let limited = candidates.length > 0;
    for (const endpoint of candidates) {
      try {
        return await this.askOne(endpoint, ask);
      } catch (error) {
        if (!isEndpointTrouble(error)) throw error;
        reasons.push(describeFailure(endpoint, error));
        limited &&= isSilence(error, "rateLimited");
      }
    }
    const { chainId } = this.#options;
    const detail = reasons.length === 0 ? "no endpoint serves this chain" : reasons.join("; ");
    throw new ChainUnavailable(`chain ${chainId} is not available: ${detail}`, { limited });
  }

  /** The answer of one endpoint; null if it gives none. Then the reason is added to `reasons`. */
  async tryOne<T>(endpoint: Endpoint, ask: Ask<T>, reasons: string[]): Promise<Said<T> | null> {
    try {
      return { label: endpoint.rpc.label, answer: await this.#firstAnswer([endpoint], ask) };
    } catch (error) {
      if (!(error instanceof ChainUnavailable)) throw error;
      reasons.push(error.message);
      return null;
    }
  }

  async #proveChain(endpoint: Endpoint): Promise<void> {
    // The chain id alone until the genesis hash is known; then both.
    const { chainId, genesisHash } =
      this.#genesisHash === null
        ? { chainId: await fetchChainId(endpoint.rpc), genesisHash: null }
        : await fetchIdentity(endpoint.rpc);
    const sameStart = genesisHash === null || genesisHash === this.#genesisHash;
    if (chainId === this.#options.chainId && sameStart) {
      endpoint.chain = "proven";
      return;
    }
    const found = sameStart ? `chain ${chainId}` : `another chain ${chainId}, which begins with ${genesisHash}`;
    const message = `${endpoint.rpc.label} serves ${found}, not ${this.#options.chainId}: it is not used`;
    if (endpoint.chain !== "foreign") this.#alert(endpoint, "CRITICAL", "RPC_WRONG_CHAIN", message);
    endpoint.chain = "foreign";
    throw new BadAnswer(`it serves ${found}`);
  }

  #failed(endpoint: Endpoint, error: EndpointTrouble, ticket: number, isProven: boolean): void {
    // A node that answers with an error is up, unless it refuses to serve us at all or to report its chain.
    if (error instanceof RpcErrorAnswer && !saysOverLimit(error) && isProven) return;
    // A rate-limited endpoint is still the same machine. Another chain check would use more of its quota.
    if (error instanceof RpcUnreachable && error.kind !== "rateLimited") {
      endpoint.proveAgain();
      endpoint.shownTags.clear();
    }
    // Many calls fail together when a connection is lost; they count as one failed probe.
    const { clock, entropy } = this.#options;
    if (endpoint.probeAtMs > clock.monotonicMs()) return;
    // Calls share requests: all that were in flight when one was lost count as one failure. Timeouts count singly,
    // because each call waited for its full time.
    if (ticket <= endpoint.failedThrough && !isSilence(error, "timeout")) return;
    endpoint.failedThrough = endpoint.asked;
    endpoint.failures++;
    if (!endpoint.lost) return;
    const failures = Math.max(1, endpoint.failures - FAILURES_BEFORE_SKIPPED + 1);
    // The jitter keeps the nodes of a cluster from probing at the same time.
    endpoint.probeAtMs = clock.monotonicMs() + backoffMs(PROBE_AGAIN, failures, entropy.random());
    if (endpoint.failures !== FAILURES_BEFORE_SKIPPED) return;
    const message = `${describeFailure(endpoint, error)}: it is skipped until it answers a probe`;
    this.#alert(endpoint, "WARNING", "RPC_ENDPOINT_DOWN", message);
  }

  async #probe(endpoint: Endpoint): Promise<void> {
    endpoint.probing = true;
    try {
      endpoint.proveAgain();
      await this.askOne(endpoint, async () => undefined);
    } catch {
      // askOne has scheduled the next probe; no caller waits for this one.
    } finally {
      endpoint.probing = false;
    }
  }

  async #compareHeads(): Promise<void> {
    this.#compareAtMs = null;
    await this.#heads.look(this.#all.filter((endpoint) => !endpoint.lost));
    this.#compareAtMs = this.#options.clock.monotonicMs() + COMPARE_EVERY_MS;
    for (const endpoint of this.#all) if (endpoint.reported !== null) this.#reportState(endpoint);
  }

  #reportState(endpoint: Endpoint): void {
    const { index, state, alerts, rpc } = endpoint;
    if (endpoint.reported === state) return;
    endpoint.reported = state;
    const { chainId, telemetry } = this.#options;
    telemetry.emit({ type: "rpc.endpoint", chainId, endpoint: index, state });
    if (state !== "up") return;
    const message = `RPC endpoint ${rpc.label} is used again`;
    for (const code of alerts) telemetry.emit({ type: "alert.resolved", code, message, chainId, endpoint: index });
    alerts.clear();
  }

  #alert({ alerts, index }: Endpoint, severity: AlertSeverity, code: AlertCode, detail: string): void {
    const { chainId, telemetry } = this.#options;
    alerts.add(code);
    telemetry.emit({ type: "alert", severity, code, message: `RPC endpoint ${detail}`, chainId, endpoint: index });
  }
}

type EndpointTrouble = RpcUnreachable | RpcErrorAnswer | BadAnswer;

/** Any other error is a bug and must not be hidden by asking another endpoint. */
function isEndpointTrouble(error: unknown): error is EndpointTrouble {
  return error instanceof RpcUnreachable || error instanceof RpcErrorAnswer || error instanceof BadAnswer;
}

function isSilence(error: EndpointTrouble, kind: UnreachableKind) {
  return error instanceof RpcUnreachable && error.kind === kind;
}

/** `RpcUnreachable` names the endpoint in its own message. */
export function describeFailure(endpoint: Endpoint, error: Error): string {
  return error instanceof RpcUnreachable ? error.message : `${endpoint.rpc.label}: ${error.message}`;
}

export const FAILURES_BEFORE_SKIPPED = 3;

/** An RPC endpoint and its state. */
export class Endpoint {
  readonly index: number;
  readonly rpc: RpcTransport;
  readonly send: SendRule;
  /** Form of `eth_getBlockReceipts` that this node takes; learned at the first use. */
  blockReceipts: "byHash" | "byObject" | "unsupported" = "byHash";
  /** Blocks up to this height count as unprovable. Later blocks are tried again. */
  unprovableThrough = -1;
  /** The tags among `safe` and `finalized` for which it has shown a block since the last lost connection. */
  readonly shownTags = new Set<BlockTag>();
  failures = 0;
  /** Number of requests so far, and the last of them that was in flight when a failure was counted. */
  asked = 0;
  failedThrough = 0;
  /** Time of the next probe while it is skipped; 0 = in use. */
  probeAtMs = 0;
  /**
   * Result of the chain check. It runs at first use and after each closed connection: the URL may lead to another
   * machine now.
   */
  chain: "unproven" | "proven" | "foreign" = "unproven";
  probing = false;
  /** State of the last telemetry event; null if there was none. */
  reported: EndpointState | null = null;
  /** Alerts that were raised and not resolved. */
  readonly alerts = new Set<AlertCode>();
  /** Its head is stuck or far behind while another endpoint's head moves. Set by `HeadWatch`. */
  behind = false;
  /** Its head at the last comparison; null if it was not asked or did not answer. */
  head: number | null = null;

  constructor(index: number, rpc: RpcTransport, send: SendRule) {
    this.index = index;
    this.rpc = rpc;
    this.send = send;
  }

  /** It keeps failing, or serves another chain. It is not used until a probe succeeds. */
  get lost(): boolean {
    return this.chain === "foreign" || this.failures >= FAILURES_BEFORE_SKIPPED;
  }

  /** Requires a new chain check: the URL may lead to another machine from now on. */
  proveAgain(): void {
    if (this.chain === "proven") this.chain = "unproven";
  }

  get down(): boolean {
    return this.state !== "up";
  }

  get state(): EndpointState {
    if (this.chain === "foreign") return "foreign";
    if (this.lost) return "failing";
    return this.behind ? "behind" : "up";
  }
}
