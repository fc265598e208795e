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
  /** RPC URLs in order of preference. User and password in a URL are sent as basic authentication. */
  readonly urls: readonly string[];
  readonly chainId: number;
  readonly telemetry: Telemetry;
  readonly entropy: Entropy;
}

/** Request to one endpoint. On `RpcUnreachable`, `RpcErrorAnswer` or `BadAnswer`, the next endpoint is tried. */
export type Ask<T> = (rpc: RpcTransport, endpoint: Endpoint) => Promise<T>;

/** The response of one endpoint, with the endpoint's label. */
export interface Said<T> {
  readonly label: string;
  readonly answer: T;
}

const PROBE_AGAIN: BackoffRule = { firstMs: 1_000, mostMs: 30_000 };

/**
 * The endpoints of one chain, in order of preference. An endpoint that keeps failing is skipped and probed in the
 * background, with back-off. An endpoint that falls behind the others is skipped until it catches up (head-watch.ts).
 * An endpoint that serves another chain is never used. If no endpoint is known to be up, all are tried: a wrong health
 * state then costs only time.
 */
export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #all: readonly Endpoint[];
  readonly #heads: HeadWatch<Endpoint>;
  /** Genesis hash of the chain; null until it is known. */
  #genesisHash: Hash | null = null;
  /** Monotonic time of the next comparison of the endpoints; null while one is running. */
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

  /** Returns the known state of each endpoint, without sending a request. */
  health(): readonly EndpointHealth[] {
    const highest = Math.max(...this.#all.map(({ head }) => head ?? 0));
    return this.#all.map(({ rpc, reported, head }) => {
      return { url: rpc.label, status: reported ?? "unknown", behind: head === null ? null : highest - head };
    });
  }

  /** Returns the response of the first endpoint that succeeds. */
  async read<T>(ask: Ask<T>): Promise<T> {
    return this.#firstAnswer(this.usable(), ask);
  }

  /**
   * Implements `Chain.identity`. Once the genesis hash is known, an endpoint that recovers must have the same one. If
   * every endpoint serves another chain, one of them is asked for its identity.
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
      // The endpoint's URL now leads to another chain: check its chain before it is used again.
      if (identity.chainId !== this.#options.chainId) endpoint.proveAgain();
      return identity;
    });
  }

  /**
   * Asks all endpoints that are up, at the same time. An endpoint that fails now is reported as "silent", which is no
   * vote. An endpoint that was already down is not asked: otherwise a dead spare would delay every decision. Throws
   * `ChainUnavailable` if none answers. Empty if none serves this chain.
   */
  async readEverywhere<T>(ask: Ask<T>): Promise<readonly EndpointAnswer<T>[]> {
    const asked = this.usable();
    // Endpoints that were up before this request. If one fails now, this result reports it as silent; only later
    // requests leave it out.
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
   * Asks the endpoints that are up: two at the same time, then one by one until `isEnough`. Null if fewer than two are
   * up. Throws if an endpoint did not answer and its vote could still change the result.
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

  /** Sends a request to one endpoint after checking its chain, and records its health. */
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

  /** Every endpoint that is up; if none is known to be up, all endpoints that serve this chain. */
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

  /** Endpoints that a transaction may be sent to: only private ones if `privately`, else all except read-only ones. */
  senders(privately: boolean): readonly Endpoint[] {
    return this.usable(this.#all.filter(({ send }) => (privately ? send === "only" : send !== "never")));
  }

  /** Labels of the private endpoints. If there are any, a transaction is sent only to them until it is disclosed. */
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

  /** Returns the response of one endpoint. If it gives none, returns null and adds the reason to `reasons`. */
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
    // Until the genesis hash is known, check only the chain id; then check both.
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
    // A node that answers with an error is up, unless it refuses all requests or does not report its chain id.
    if (error instanceof RpcErrorAnswer && !saysOverLimit(error) && isProven) return;
    // Skip the new chain check if the endpoint is rate-limited: it is still the same machine, and the check would use
    // more of its quota.
    if (error instanceof RpcUnreachable && error.kind !== "rateLimited") {
      endpoint.proveAgain();
      endpoint.shownTags.clear();
    }
    // Count one failed probe if many calls fail together because a connection was lost.
    const { clock, entropy } = this.#options;
    if (endpoint.probeAtMs > clock.monotonicMs()) return;
    // Count one failure for all calls that were in flight when a shared request was lost. Timeouts count singly,
    // because each call waited its full time.
    if (ticket <= endpoint.failedThrough && !isSilence(error, "timeout")) return;
    endpoint.failedThrough = endpoint.asked;
    endpoint.failures++;
    if (!endpoint.lost) return;
    const failures = Math.max(1, endpoint.failures - FAILURES_BEFORE_SKIPPED + 1);
    // Jitter keeps the nodes of a cluster from probing an endpoint at the same time.
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
      // Ignore a failed probe: askOne has scheduled the next one, and no caller waits for this one.
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

/** True for errors caused by an endpoint. Any other error is a bug, which trying another endpoint must not hide. */
function isEndpointTrouble(error: unknown): error is EndpointTrouble {
  return error instanceof RpcUnreachable || error instanceof RpcErrorAnswer || error instanceof BadAnswer;
}

function isSilence(error: EndpointTrouble, kind: UnreachableKind) {
  return error instanceof RpcUnreachable && error.kind === kind;
}

/** Describes an endpoint's failure with the endpoint's label. `RpcUnreachable` already contains the label. */
export function describeFailure(endpoint: Endpoint, error: Error): string {
  return error instanceof RpcUnreachable ? error.message : `${endpoint.rpc.label}: ${error.message}`;
}

export const FAILURES_BEFORE_SKIPPED = 3;

/** An RPC endpoint and its state. */
export class Endpoint {
  readonly index: number;
  readonly rpc: RpcTransport;
  readonly send: SendRule;
  /** Parameter form of `eth_getBlockReceipts` that this node accepts; detected at the first use. */
  blockReceipts: "byHash" | "byObject" | "unsupported" = "byHash";
  /**
   * Receipts of blocks up to this number are not checked against their block's hash, because this endpoint recently
   * returned a block that cannot be checked so. Later blocks are tried again.
   */
  unprovableThrough = -1;
  /** Which of the tags `safe` and `finalized` the endpoint has returned a block for since its last lost connection. */
  readonly shownTags = new Set<BlockTag>();
  failures = 0;
  /**
   * Number of the last request. `failedThrough`: number of the last request sent before a failure was counted. If a
   * request up to this number fails later, that is not counted again, unless it timed out.
   */
  asked = 0;
  failedThrough = 0;
  /** Time of the next probe while the endpoint is skipped; 0 if it is in use. */
  probeAtMs = 0;
  /**
   * Result of the check of the endpoint's chain. It runs at first use and after each closed connection, because the URL
   * may then lead to another machine.
   */
  chain: "unproven" | "proven" | "foreign" = "unproven";
  probing = false;
  /** Endpoint state in the last telemetry event; null if there was none. */
  reported: EndpointState | null = null;
  /** Alerts about this endpoint that were raised and not resolved. */
  readonly alerts = new Set<AlertCode>();
  /**
   * True if the endpoint's newest block is stuck or far behind while another endpoint's advances. Set by `HeadWatch`.
   */
  behind = false;
  /** The endpoint's newest block number at the last comparison; null if it was not asked or did not answer. */
  head: number | null = null;

  constructor(index: number, rpc: RpcTransport, send: SendRule) {
    this.index = index;
    this.rpc = rpc;
    this.send = send;
  }

  /** True if the endpoint keeps failing or serves another chain. It is not used until a probe succeeds. */
  get lost(): boolean {
    return this.chain === "foreign" || this.failures >= FAILURES_BEFORE_SKIPPED;
  }

  /** Requires a new check of the endpoint's chain, because its URL may now lead to another machine. */
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
