import { createEvmChain } from "../../adapters/evm/chain.ts";
import { createCodec } from "../../adapters/evm/codec/codec.ts";
import { NewHeads } from "../../adapters/evm/rpc/new-heads.ts";
import type { PeerReceiver } from "../../adapters/http/server.ts";
import { createHttpPeers } from "../../adapters/peers/http-peers.ts";
import { migrate, type SchemaOptions } from "../../adapters/postgres/schema/migrate.ts";
import { PostgresSessionLock } from "../../adapters/postgres/session/session-lock.ts";
import { openPostgresStore, type PostgresStore } from "../../adapters/postgres/store.ts";
import { PostgresWakeUps } from "../../adapters/postgres/stores/wake-ups.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { createEntropy, createKeyPair } from "../../adapters/system/entropy.ts";
import { systemSecrets } from "../../adapters/system/secrets.ts";
import { createTelemetry, type TelemetrySink } from "../../adapters/system/telemetry.ts";
import { FencepostNode, type Patiently } from "../../application/loops/node.ts";
import type { NodePorts } from "../../application/loops/node-core.ts";
import { RecentAlerts } from "../../application/queries/node-reports.ts";
import { defined } from "../../domain/defined.ts";
import { ceilingsOf } from "../../domain/fees/ceilings.ts";
import type { SigningBounds } from "../../domain/keys/signing.ts";
import { createMask, type Mask } from "../../domain/text/mask.ts";
import { traceparentIn } from "../../domain/text/trace-context.ts";
import { bounded } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import { type Failpoints, noFailpoints } from "../../ports/failpoints.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { Tracer } from "../../ports/tracer.ts";
import { noWakeUps } from "../../ports/wake-ups.ts";
import type { ChainConfig, ConfigFor } from "../config/config.ts";
import { advisedChain, reportingRepricing } from "./advised-chain.ts";
import { awaitDatabase, type Patience } from "./await-database.ts";
import type { Extensions } from "./extensions.ts";
import { loadPolicies } from "./load-policies.ts";
import { maskedHook, maskedSigner } from "./masked-ports.ts";
import { openSigning } from "./open-signing.ts";
import { serveOnlyKnown } from "./serve-chains.ts";
import { version } from "./version.ts";

export interface NodeParts {
  readonly config: ConfigFor<"start">;
  /** URL by which others reach the node. The database is not written before it is known. */
  readonly url: string | Promise<string>;
  readonly sinks: readonly TelemetrySink[];
  readonly failpoint?: Failpoints;
  readonly extensions: Extensions;
  /** Null: an unreachable database is an error at once. */
  readonly patience: Patience | null;
  /** Called before other nodes can discover this one: from here on their requests must work. */
  readonly onBuilt?: (node: FencepostNode, parts: BuiltParts) => void;
}

export interface BuiltParts {
  readonly gate: Pick<PeerReceiver, "admit">;
  readonly store: PostgresStore;
}

export type ComposedNode = Awaited<ReturnType<typeof composeNode>>;

/** Time to close connections. The leases are released before, and a remote server may never answer. */
const CLOSE_AT_MOST_MS = 1_000;

/**
 * Interval between two JSON-RPC requests of reads, and of sends, to an endpoint. Each request is a batch: 1,000 lanes
 * with a transaction per second each need one request for about ten of them.
 */
const REQUEST_EVERY_MS = 25;

/** Opens the adapters and builds a node on them. If one fails to open, the others are closed. */
export async function composeNode(parts: NodeParts) {
  const opened: Resource[] = [];
  const failed = new AbortController();
  const keep: Keep = (resource) => {
    if (failed.signal.aborted) void resource.close();
    opened.unshift(resource);
    return resource;
  };
  try {
    const { config, patience, failpoint = noFailpoints } = parts;
    const mask = createMask(config.secrets);
    const { sinks, stuckHook, repricing, tracing } = keep(parts.extensions);
    const { alerts, telemetry } = openTelemetry([...parts.sinks, ...sinks], mask);
    const entropy = createEntropy(systemClock);
    const { databaseUrl, databaseSchema: schema, preparedStatements } = config;
    // Bypasses a transaction pooler, for session state (advisory locks, LISTEN).
    const directUrl = config.directDatabaseUrl ?? databaseUrl;
    const direct = { directUrl, schema, clock: systemClock, entropy, telemetry };
    // Begun first. An earlier node counts as dead after two looks without its session lock, some time apart, while we
    // hold ours. The first look is made now, and the rest of the start runs until the second.
    const sessionLock = keep(new PostgresSessionLock(direct));
    const judging = loadPolicies(config);
    const opening = openChains(config, { telemetry, entropy, mask, keep }, repricing);
    const bounds = signingBounds(opening);
    const [policies, signer, chains, url] = await Promise.all([
      judging,
      openSigning(config, { telemetry, entropy, bounds }).then(keep),
      opening,
      parts.url,
    ]);
    if (signer.curve === "javascript") reportSlowSigning(telemetry);
    const patiently: Patiently = (work) => (patience === null ? work() : awaitDatabase(work, patience));
    await patiently(() => prepareDatabase({ databaseUrl, schema }, chains, telemetry));
    const codec = createCodec();
    const connecting = { databaseUrl, schema, preparedStatements, leaseDurationMs: config.lease.durationMs };
    const store = keep(
      await patiently(() => openPostgresStore({ ...connecting, clock: systemClock, policyWords: codec })),
    );
    const wakeUps = config.notifications ? keep(new PostgresWakeUps(direct)) : noWakeUps;
    const peers = keep(
      createHttpPeers({
        keys: createKeyPair(),
        secrets: config.clusterSecrets,
        urlPatterns: config.peerUrlPatterns,
        readInstances: () => store.instances(),
        clock: systemClock,
        telemetry,
      }),
    );
    const resources = { store, chains, signer: maskedSigner(signer, mask), peers, wakeUps, sessionLock };
    const system = { clock: systemClock, entropy, secrets: systemSecrets, telemetry, failpoint };
    const hook = stuckHook === undefined ? {} : { stuckHook: maskedHook(stuckHook, mask) };
    const ports = { ...resources, policies, alerts, codec, ...system, ...hook };
    const beside = { ...traced(tracing, store), ...retaining(config, store) };
    const node = new FencepostNode({ ...ports, ...beside }, { ...settingsOf(config), url, version });
    parts.onBuilt?.(node, { gate: peers.gate, store });
    await node.start(patiently);
    /** Closes the node first, then its adapters. */
    const close = async (): Promise<void> => {
      await node.close();
      await closeAll(opened);
    };
    return { node, store, signer, chains: chains.map(({ chain }) => chain), tracing, close };
  } catch (error) {
    failed.abort();
    await closeAll(opened);
    throw error;
  }
}

async function prepareDatabase(
  database: SchemaOptions,
  chains: readonly OpenedChain[],
  telemetry: Telemetry,
): Promise<void> {
  await migrate(database);
  await serveOnlyKnown(database, chains, telemetry);
}

/** Telemetry that also keeps recent alerts for people who look later. */
function openTelemetry(sinks: readonly TelemetrySink[], mask: Mask) {
  const alerts = new RecentAlerts(systemClock);
  return { alerts, telemetry: createTelemetry([...sinks, (event) => alerts.hear(event)], mask) };
}

function settingsOf({ nodeId, mode, lease, writer, queueLimit, drainTimeoutMs, pools }: NodeParts["config"]) {
  return { nodeId, mode, lease, writer, queueLimit, drainTimeoutMs, pools };
}

/**
 * Continues the traces of transactions created on other nodes: their trace context is in the transaction's metadata.
 */
function traced(tracing: Extensions["tracing"], store: Pick<PostgresStore, "transaction">): { tracer?: Tracer } {
  if (tracing === undefined) return {};
  tracing.connect(async (txId) => traceparentIn((await store.transaction(txId))?.metadata ?? null));
  return { tracer: tracing.tracer };
}

function retaining({ retention }: NodeParts["config"], store: PostgresStore): Pick<NodePorts, "retention"> {
  return retention === null ? {} : { retention: { store, ...retention } };
}

type Resource = Pick<Extensions, "close">;

/** Registers a resource to close with the node, or closes it at once if the start has failed. */
type Keep = <T extends Resource>(resource: T) => T;

interface ChainPorts {
  readonly telemetry: Telemetry;
  readonly entropy: Entropy;
  readonly mask: Mask;
  readonly keep: Keep;
}

type Plugged = Pick<NodeParts["config"], "hookNetworks"> & Pick<Extensions, "repricing">;

function openChains({ chains, hookNetworks }: NodeParts["config"], ports: ChainPorts, own: Extensions["repricing"]) {
  const repricing = own && reportingRepricing(own, ports.telemetry);
  return Promise.all(chains.map((chain) => openChain(chain, ports, { hookNetworks, ...defined({ repricing }) })));
}

async function openChain(config: ChainConfig, { keep, ...ports }: ChainPorts, { hookNetworks, repricing }: Plugged) {
  const { chainId, rpcUrls, oracle, settings, wsUrl } = config;
  const options = { ...ports, urls: rpcUrls, clock: systemClock, requestEveryMs: REQUEST_EVERY_MS };
  const chain = keep(await createEvmChain(chainId === null ? options : { ...options, chainId }));
  const advised = advisedChain(chain, { oracle, hookNetworks, telemetry: ports.telemetry });
  // A custom strategy replaces the configured one, but does not switch repricing on.
  const own = settings.repricing === null ? {} : defined({ repricing });
  const heads = wsUrl === null ? null : keep(new NewHeads({ ...ports, url: wsUrl, clock: systemClock }));
  const hinted = heads === null ? {} : { hearHeads: (listener: () => void) => heads.subscribe(listener) };
  return { chain: { ...advised, ...hinted }, settings: { ...settings, ...own }, named: chainId !== null };
}

type OpenedChain = Awaited<ReturnType<typeof openChain>>;

/** Reports slow signing as a warning: the signatures are right. */
function reportSlowSigning(telemetry: Telemetry): void {
  const message = "WebAssembly is not available: transactions are signed in JavaScript, at about a third of the speed";
  telemetry.emit({ type: "alert", severity: "WARNING", code: "SLOW_SIGNING", message });
}

/** Limits that the signing process enforces. The policies in force follow when the node has read them. */
function signingBounds(opening: Promise<readonly OpenedChain[]>): Promise<SigningBounds> {
  const bounds = opening.then((chains) => {
    const ceilings = chains.map(({ chain: { chainId: id }, settings }) => [id, ceilingsOf(id, settings)] as const);
    return { ceilings: new Map(ceilings), policies: null };
  });
  // Avoids an unhandled rejection: openChains reports the failure, and a signing thread never awaits this.
  bounds.catch(() => undefined);
  return bounds;
}

/** Closes all, within a time limit: a failure or a hanging close does not stop the others. */
async function closeAll(resources: readonly Resource[]): Promise<void> {
  const closed = Promise.allSettled(resources.map((resource) => resource.close()));
  await bounded(systemClock, closed, systemClock.monotonicMs() + CLOSE_AT_MOST_MS);
}
