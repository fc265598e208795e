import { dashboardFiles } from "../adapters/dashboard/files.ts";
import { createCodec } from "../adapters/evm/codec.ts";
import type { WireOptions } from "../adapters/http/host-and-origin.ts";
import { refusalLog } from "../adapters/http/refusal-log.ts";
import {
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
  type PeerReceiver,
} from "../adapters/http/server.ts";
import { mayBeAt } from "../adapters/peers/url-patterns.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { createLogSink } from "../adapters/system/log-sink.ts";
import type { Logger } from "../adapters/system/logger.ts";
import { createMetrics, type Metrics } from "../adapters/system/metrics.ts";
import { type Admittance, OPEN } from "../application/admittance.ts";
import { LiveKeys } from "../application/live-keys.ts";
import type { FencepostNode } from "../application/loops/node.ts";
import type { Reception } from "../application/loops/reception.ts";
import type { FencepostApi } from "../application/operations/calls.ts";
import { defined } from "../domain/defined.ts";
import { unavailable } from "../domain/errors.ts";
import type { Address } from "../domain/lane.ts";
import { createMask } from "../domain/mask.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import { advertisedUrl, literalHost } from "./advertised-url.ts";
import type { Patience } from "./await-database.ts";
import { clusterReading } from "./cluster-reading.ts";
import { type BuiltParts, type ComposedNode, composeNode } from "./compose-node.ts";
import { type Config, type ConfigFor, ConfigurationError } from "./config/config.ts";
import { openExtensions } from "./extensions.ts";
import { version } from "./version.ts";

export type Service = Awaited<ReturnType<typeof startService>>;

export interface ServiceOptions {
  readonly config: ConfigFor<"start">;
  readonly logger: Logger;
  readonly failpoint?: Failpoints;
  /** One of several workers: the configured port is shared with the others, and another one is its own. */
  readonly sharesPort?: boolean;
  /** Its chain was started for it and ends with it: the dashboard offers to send test transfers. */
  readonly isDev?: boolean;
  /** Waits for a database that does not answer, until this is aborted. Absent: that is an error. */
  readonly waitUntil?: AbortSignal;
}

const LAST_ANSWERS_MS = 500;
/** Requests have a turn of the event loop for a quarter of what a transaction may stand idle in the database. */
const TURNS_PER_LEASE = 120;

/**
 * One node behind HTTP. The port is taken before anything is written to the database: a mistake there should show first.
 * Meanwhile keys and chains are opened, and the session lock is taken, which other nodes do not know of yet.
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
  const face = new Face(config);
  face.api.current = { readiness: async () => ({ ready: false, database: false, chains: [], draining: false }) };
  const serving = serve(options, { face, metrics, checksum, ...defined({ within: extensions.tracing?.within }) });
  try {
    const composed = await composeNode({
      config,
      url: serving.then(({ own }) => allowed(config, ownAddress(config, own, sharesPort))),
      extensions,
      sinks: [metrics.sink, createLogSink({ log: logger, nodeId: config.nodeId, checksum, clock: systemClock })],
      patience: waitUntil === undefined ? null : patienceOf(logger, waitUntil),
      onBuilt: (node, { gate, store }) => {
        face.peer.current = peerFace(node, gate);
        if (config.apiKeys !== "none") face.keys.start(store);
      },
      ...(failpoint === undefined ? {} : { failpoint }),
    });
    const { http, url, own } = await serving;
    face.api.current = composed.node.api;
    face.reception = composed.node.reception;
    const { node, store } = composed;
    metrics.connect({ gauge: (name) => node.gauges()[name], cluster: clusterReading(store, systemClock) });
    await composed.node.settlingIn.whenOver();
    const shared = sharesPort ? await listenTogether(http, config) : null;
    return {
      /** Where callers come in: the port that the workers of one machine share, where it is one of them. */
      url: shared?.url ?? url,
      /** Where operators do; null: in the same place. */
      adminUrl: config.admin === null ? null : (shared?.adminUrl ?? own),
      nodeId: config.nodeId,
      chainIds: composed.chains.map(({ chainId }) => chainId),
      /** As people write them, EIP-55. */
      signers: composed.signer.addresses().map(checksum),
      /** Drains, releases the lanes, closes. Safe to call twice. */
      stop: once(async () => {
        await face.keys.stop();
        await stop(http, composed);
      }),
    };
  } catch (error) {
    await serving.then(
      ({ http }) => http.close(0),
      () => undefined,
    );
    throw error;
  }
}

/** What the server shows of a node that is not there yet. */
class Face {
  readonly api = new Deferred<FencepostApi>();
  readonly peer = new Deferred<PeerReceiver>();
  readonly keys: LiveKeys;
  reception: Receiving = { admittance: (): Admittance => OPEN, waiting: 0 };

  constructor({ lease, keyQuotas: quotas }: Config) {
    this.keys = new LiveKeys({ clock: systemClock, trustedMs: lease.durationMs, quotas });
  }
}

interface Shown {
  readonly face: Face;
  readonly metrics: Metrics;
  readonly checksum: (address: Address) => string;
  readonly within?: HttpServerOptions["within"];
}

/** The server, listening. `own`: where other nodes reach this process. */
async function serve({ config, logger, sharesPort = false, isDev = false }: ServiceOptions, shown: Shown) {
  const { face, metrics, checksum } = shown;
  const noteRefusal = refusalLog(systemClock, (noted) => logger.log("warn", { ...noted }, "a request was not allowed"));
  const http = createHttpServer({
    // Read first: while that waits, threads are started, before making the server keeps this one busy.
    files: await dashboardFiles({ isDev }),
    api: face.api.face,
    apiKeys: config.apiKeys,
    liveKeys: face.keys,
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
    peer: face.peer.face,
    ...defined({ within: shown.within }),
    wire: { hosts: hostsOf(config), origins: [config.advertiseUrl ?? [], config.allowedOrigins].flat() },
    rpc: config.rpc,
    door: doorOf({ config, logger, reception: () => face.reception }),
  });
  const { host, port, admin } = config;
  if (admin === null) {
    const { url } = await http.listen(host, sharesPort ? 0 : port);
    return { http, url, own: url };
  }
  const { url: own } = await http.listen(admin.host, sharesPort ? 0 : admin.port, "operators");
  return { http, url: sharesPort ? own : (await http.listenShared(host, port, "callers")).url, own };
}

/** On the ports that the workers of one machine share. */
async function listenTogether(http: HttpServer, { host, port, admin }: Config) {
  if (admin === null) return { ...(await http.listenShared(host, port)), adminUrl: null };
  const { url: adminUrl } = await http.listenShared(admin.host, admin.port, "operators");
  return { ...(await http.listenShared(host, port, "callers")), adminUrl };
}

/** A key that is asked for protects by itself: a page does not know it. */
function hostsOf({ allowedHosts, apiKeys, host, admin, advertiseUrl }: Config): WireOptions["hosts"] {
  if (allowedHosts !== null) return allowedHosts;
  if (apiKeys !== "none") return "any";
  const advertised = new URL(advertiseUrl ?? advertisedUrl(`http://${literalHost(host)}`)).hostname;
  return { own: [literalHost(host), literalHost(admin?.host ?? host), advertised] };
}

type Receiving = Pick<Reception, "admittance" | "waiting">;

function doorOf({ config, logger, reception }: Pick<ServiceOptions, "config" | "logger"> & { reception(): Receiving }) {
  return {
    admittance: () => reception().admittance(),
    turnMs: config.lease.durationMs / TURNS_PER_LEASE,
    limit: config.queueLimit,
    onRefused: (report: object) => logger.log("warn", { ...report }, "overloaded: requests were refused unread"),
    onWaiting: (count: number) => {
      reception().waiting = count;
    },
  };
}

function patienceOf(logger: Logger, signal: AbortSignal): Patience {
  const say = (line: string, reason?: string) => logger.log("warn", reason === undefined ? {} : { reason }, line);
  return { clock: systemClock, signal, say };
}

/** A worker is reached on a port of its own: of what was configured, only the machine's name is true of it. */
function ownAddress(config: Config, url: string, sharesPort: boolean): string {
  if (config.advertiseUrl === null) return advertisedUrl(url);
  if (!sharesPort) return config.advertiseUrl;
  const own = new URL(config.advertiseUrl);
  own.port = new URL(url).port;
  return own.origin;
}

/** Other nodes have the same pattern, and would send nothing here. */
function allowed({ peerUrlPatterns }: Config, url: string): string {
  if (mayBeAt(url, peerUrlPatterns)) return url;
  const patterns = peerUrlPatterns?.join(", ");
  throw new ConfigurationError([
    `FENCEPOST_PEER_URL_PATTERN (${patterns}) does not allow the URL of this node, ${url}`,
  ]);
}

/**
 * Callers and other nodes that ask before the node is up are told so, instead of being refused a connection. Whether it is
 * up is looked at in each call: the server may take a method out of the face when it is made.
 */
class Deferred<T extends object> {
  current: Partial<T> = {};
  readonly face = new Proxy({} as T, {
    get:
      (_, method) =>
      (...args: readonly unknown[]): unknown => {
        const known = this.current[method as keyof T];
        if (typeof known === "function") return known.apply(this.current, args);
        return Promise.reject(unavailable("this node is starting"));
      },
  });
}

function peerFace(node: FencepostNode, gate: BuiltParts["gate"]): PeerReceiver {
  return {
    admit: (route, authorization) => gate.admit(route, authorization),
    create: (creates, repeat) => node.create(creates, { repeat }),
    act: (lane, request) => node.actions.receive(lane, request),
    kill: async (kill) => node.kills.receive(kill),
  };
}

async function stop(http: HttpServer, composed: ComposedNode): Promise<void> {
  composed.node.drain();
  http.drain();
  await composed.close();
  // Requests still in hand cannot succeed any more: a moment for their answers to leave.
  await http.close(LAST_ANSWERS_MS);
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  return () => {
    running ??= work();
    return running;
  };
}
