import { dashboardFiles } from "../adapters/dashboard/files.ts";
import { createCodec } from "../adapters/evm/codec/codec.ts";
import type { WireOptions } from "../adapters/http/admission/host-and-origin.ts";
import type { HttpServerOptions, PeerReceiver } from "../adapters/http/exchange/options.ts";
import { createHttpServer, type HttpServer } from "../adapters/http/server.ts";
import { mayBeAt } from "../adapters/peers/url-patterns.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { createLogSink } from "../adapters/system/log-sink.ts";
import type { Logger } from "../adapters/system/logger.ts";
import { createMetrics, type Metrics } from "../adapters/system/metrics.ts";
import { refusalLog } from "../adapters/system/refusal-log.ts";
import { LiveKeys } from "../application/live-keys.ts";
import { OPEN, type Reception } from "../application/loops/reception.ts";
import type { FencepostApi } from "../application/operations/calls.ts";
import { defined } from "../domain/defined.ts";
import { unavailable } from "../domain/errors.ts";
import type { Checksum } from "../domain/text/checksum.ts";
import { createMask } from "../domain/text/mask.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import { type Config, type ConfigFor, ConfigurationError } from "./config/config.ts";
import { advertisedUrl, literalHost } from "./node/advertised-url.ts";
import { clusterReading } from "./node/cluster-reading.ts";
import { composeNode } from "./node/compose-node.ts";
import { openExtensions } from "./node/extensions.ts";
import { version } from "./node/version.ts";

export type Service = Awaited<ReturnType<typeof startService>>;

export interface ServiceOptions {
  readonly config: ConfigFor<"start">;
  readonly logger: Logger;
  readonly failpoint?: Failpoints;
  /**
   * True if this process is one of several workers: they share the configured port, and each also listens on a port of
   * its own.
   */
  readonly sharesPort?: boolean;
  /** True if `dev` started the chain for this node: then the dashboard offers test transfers. */
  readonly isDev?: boolean;
  /**
   * Signal that ends the wait for a database that does not respond. Absent: an unreachable database is an error at
   * once.
   */
  readonly waitUntil?: AbortSignal;
}

const LAST_ANSWERS_MS = 500;
/**
 * Requests are read in time slices of 1/120 of the lease's duration. So the node's other work, such as renewing the
 * lease, is not delayed for long.
 */
const TURNS_PER_LEASE = 120;

/**
 * Starts one node with its HTTP server. The server listens before the node writes to the database, so that a wrong port
 * fails first. Keys, chains and the session lock are opened meanwhile, because other nodes cannot observe them.
 */
export async function startService(options: ServiceOptions) {
  const { config, logger, failpoint, sharesPort = false, waitUntil } = options;
  const codec = createCodec();
  const checksum = codec.checksum.bind(codec);
  const metrics = createMetrics({ checksum });
  metrics.introduce({ nodeId: config.nodeId, version });
  const onAlertLost = (reason: string) =>
    logger.log("warn", { reason }, "an alert could not be delivered to the webhook");
  const extensions = await openExtensions({ config, checksum, onAlertLost });
  const say = (line: string, reason?: string) => logger.log("warn", defined({ reason }), line);
  const handlers = createHandlers(config);
  const serving = serve(options, { handlers, metrics, checksum, ...defined({ within: extensions.tracing?.within }) });
  try {
    const composed = await composeNode({
      config,
      url: serving.then(({ own }) => allowed(config, ownAddress(config, own, sharesPort))),
      extensions,
      sinks: [metrics.sink, createLogSink({ log: logger, nodeId: config.nodeId, checksum, clock: systemClock })],
      ...(waitUntil && { patience: { clock: systemClock, signal: waitUntil, say } }),
      onBuilt: (node, { gate, store }) => {
        handlers.peer.current = {
          admit: (route, authorization) => gate.admit(route, authorization),
          create: (creates, repeat) => node.create(creates, { repeat }),
          act: (lane, request) => node.actions.receive(lane, request),
          kill: async (kill) => node.kills.receive(kill),
        };
        if (config.apiKeys !== "none") handlers.keys.start(store);
      },
      ...(failpoint && { failpoint }),
    });
    const { http, url, own } = await serving;
    const { node, store } = composed;
    handlers.api.current = node.api;
    handlers.reception = node.reception;
    metrics.connect({
      gauge: (name) => node.gauges()[name],
      cluster: clusterReading(store, systemClock),
      webhookTroubles: () => node.webhookTroubles(),
    });
    // A failed rehearsal decides nothing: the first commits then open their connections themselves.
    await Promise.all([node.settlingIn.whenOver(), store.rehearse().catch(() => undefined)]);
    const shared = sharesPort ? await listenTogether(http, config) : null;
    return {
      /** URL for callers: the shared port if this process is one of several workers. */
      url: shared?.url ?? url,
      /** URL for operators; null: the same as `url`. */
      adminUrl: config.admin === null ? null : (shared?.adminUrl ?? own),
      nodeId: config.nodeId,
      chainIds: composed.chains.map(({ chainId }) => chainId),
      /** Addresses of the signers, with checksum (EIP-55). */
      signers: composed.signer.addresses().map(checksum),
      /** Drains the node, releases its lanes and closes everything. Safe to call twice. */
      stop: once(async () => {
        await handlers.keys.stop();
        node.drain();
        http.drain();
        await composed.close();
        // Open requests cannot succeed any more. Leave a short time to send their error responses.
        await http.close(LAST_ANSWERS_MS);
      }),
    };
  } catch (error) {
    await serving.then(({ http }) => http.close(0)).catch(() => undefined);
    throw error;
  }
}

/**
 * Handlers that the HTTP server uses. They exist before the node does, because the server listens while the node is
 * still starting.
 */
function createHandlers({ lease, keyQuotas: quotas }: Config) {
  const starting = async () => ({ ready: false, database: false, chains: [], draining: false });
  return {
    api: new Deferred<FencepostApi>({ readiness: starting }),
    peer: new Deferred<PeerReceiver>({}),
    keys: new LiveKeys({ clock: systemClock, trustedMs: lease.durationMs, quotas }),
    reception: { admittance: () => OPEN, waiting: 0 } as Pick<Reception, "admittance" | "waiting">,
  };
}

interface Shown extends Pick<HttpServerOptions, "within"> {
  readonly handlers: ReturnType<typeof createHandlers>;
  readonly metrics: Metrics;
  readonly checksum: Checksum;
}

/** Starts the HTTP server. `own` is the URL by which other nodes reach this process. */
async function serve({ config, logger, sharesPort = false, isDev = false }: ServiceOptions, shown: Shown) {
  const { handlers, metrics, checksum } = shown;
  const noteRefusal = refusalLog(systemClock, (noted) => logger.log("warn", { ...noted }, "a request was not allowed"));
  const http = createHttpServer({
    // Read the files before building the server. Building it occupies this thread; reading the files does not, so the
    // worker threads can start meanwhile.
    files: await dashboardFiles({ isDev }),
    api: handlers.api.proxy,
    apiKeys: config.apiKeys,
    liveKeys: handlers.keys,
    metrics: () => metrics.expose(),
    checksum,
    version,
    clock: systemClock,
    mask: createMask(config.secrets),
    logger: { error: (fields, message) => logger.log("error", { ...fields }, message) },
    onRefused: (refusal) => {
      metrics.refused(refusal);
      noteRefusal(refusal);
    },
    onResponse: metrics.httpRequest,
    onStreams: metrics.feedStreams,
    peer: handlers.peer.proxy,
    ...defined({ within: shown.within }),
    wire: { hosts: hostsOf(config), origins: [config.advertiseUrl ?? [], config.allowedOrigins].flat() },
    rpc: config.rpc,
    admission: {
      admittance: () => handlers.reception.admittance(),
      turnMs: config.lease.durationMs / TURNS_PER_LEASE,
      limit: config.queueLimit,
      onRefused: (report) => logger.log("warn", { ...report }, "overloaded: requests were refused unread"),
      onWaiting: (count) => {
        handlers.reception.waiting = count;
      },
    },
  });
  const { host, port, admin } = config;
  if (admin === null) {
    const { url } = await http.listen(host, sharesPort ? 0 : port);
    return { http, url, own: url };
  }
  const { url: own } = await http.listen(admin.host, sharesPort ? 0 : admin.port, "operators");
  return { http, url: sharesPort ? own : (await http.listenShared(host, port, "callers")).url, own };
}

/** Listens on the ports that all workers of the machine share. */
async function listenTogether(http: HttpServer, { host, port, admin }: Config) {
  if (admin === null) return { ...(await http.listenShared(host, port)), adminUrl: null };
  const { url: adminUrl } = await http.listenShared(admin.host, admin.port, "operators");
  return { ...(await http.listenShared(host, port, "callers")), adminUrl };
}

/** Host headers to accept. If API keys are required, any host is safe: a web page that rebinds DNS has no key. */
function hostsOf({ allowedHosts, apiKeys, host, admin, advertiseUrl }: Config): WireOptions["hosts"] {
  if (allowedHosts !== null) return allowedHosts;
  if (apiKeys !== "none") return "any";
  const advertised = new URL(advertiseUrl ?? advertisedUrl(`http://${literalHost(host)}`)).hostname;
  return { own: [literalHost(host), literalHost(admin?.host ?? host), advertised] };
}

/**
 * URL that this node advertises. Each of several workers has its own port, so only the host of a configured URL applies
 * to them.
 */
function ownAddress(config: Config, url: string, sharesPort: boolean) {
  if (config.advertiseUrl === null) return advertisedUrl(url);
  if (!sharesPort) return config.advertiseUrl;
  const own = new URL(config.advertiseUrl);
  own.port = new URL(url).port;
  return own.origin;
}

/**
 * Refuses an advertised URL that FENCEPOST_PEER_URL_PATTERN excludes: other nodes have the same pattern and would never
 * call it.
 */
function allowed({ peerUrlPatterns }: Config, url: string) {
  if (mayBeAt(url, peerUrlPatterns)) return url;
  const patterns = peerUrlPatterns?.join(", ");
  throw new ConfigurationError([
    `FENCEPOST_PEER_URL_PATTERN (${patterns}) does not allow the URL of this node, ${url}`,
  ]);
}

/**
 * Responds to calls with 503 until the node is up, instead of refusing connections. The server reads its handlers only
 * once, so each handler looks up the node at every call.
 */
class Deferred<T extends object> {
  current: Partial<T>;

  constructor(current: Partial<T>) {
    this.current = current;
  }

  readonly proxy = new Proxy({} as T, {
    get:
      (_, method) =>
      (...args: readonly unknown[]): unknown => {
        const known = this.current[method as keyof T];
        if (typeof known === "function") return known.apply(this.current, args);
        return Promise.reject(unavailable("this node is starting"));
      },
  });
}

function once(work: () => Promise<void>) {
  let running: Promise<void> | null = null;
  return () => {
    running ??= work();
    return running;
  };
}
