import { createEvmChain } from "../adapters/evm/chain.ts";
import { createCodec } from "../adapters/evm/codec.ts";
import { NewHeads } from "../adapters/evm/rpc/new-heads.ts";
import type { PeerReceiver } from "../adapters/http/server.ts";
import { createHttpPeers } from "../adapters/peers/http-peers.ts";
import { migrate, type SchemaOptions } from "../adapters/postgres/migrate.ts";
import { PostgresSessionLock } from "../adapters/postgres/session-lock.ts";
import { openPostgresStore, type PostgresStore } from "../adapters/postgres/store.ts";
import { PostgresWakeUps } from "../adapters/postgres/wake-ups.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { createEntropy, createKeyPair } from "../adapters/system/entropy.ts";
import { systemSecrets } from "../adapters/system/secrets.ts";
import { createTelemetry, type TelemetrySink } from "../adapters/system/telemetry.ts";
import { FencepostNode, type Patiently } from "../application/loops/node.ts";
import type { NodePorts } from "../application/loops/node-ports.ts";
import { RecentAlerts } from "../application/queries/recent-alerts.ts";
import { ceilingsOf } from "../domain/ceilings.ts";
import { defined } from "../domain/defined.ts";
import { createMask, type Mask } from "../domain/mask.ts";
import type { SigningBounds } from "../domain/signing.ts";
import { traceparentIn } from "../domain/trace-context.ts";
import { bounded } from "../ports/clock.ts";
import type { Entropy } from "../ports/entropy.ts";
import { type Failpoints, noFailpoints } from "../ports/failpoints.ts";
import type { Telemetry } from "../ports/telemetry.ts";
import type { Tracer } from "../ports/tracer.ts";
import { noWakeUps } from "../ports/wake-ups.ts";
import { advisedChain, reportingRepricing } from "./advised-chain.ts";
import { awaitDatabase, type Patience } from "./await-database.ts";
import type { ChainConfig, ConfigFor } from "./config/config.ts";
import type { Extensions } from "./extensions.ts";
import { loadPolicies } from "./load-policies.ts";
import { maskedHook, maskedSigner } from "./masked-ports.ts";
import { openSigning } from "./open-signing.ts";
import { serveOnlyKnown } from "./serve-chains.ts";
import { version } from "./version.ts";

export interface NodeParts {
  readonly config: ConfigFor<"start">;
  /** Where others reach the node. Nothing is written to the database before that is known. */
  readonly url: string | Promise<string>;
  readonly sinks: readonly TelemetrySink[];
  readonly failpoint?: Failpoints;
  readonly extensions: Extensions;
  /** Null: a database that does not answer is an error at once. */
  readonly patience: Patience | null;
  /** Called before other nodes can know of this one: what they may ask of it must work from here on. */
  readonly onBuilt?: (node: FencepostNode, parts: BuiltParts) => void;
}

export interface BuiltParts {
  readonly gate: Pick<PeerReceiver, "admit">;
  readonly store: PostgresStore;
}

export type ComposedNode = Awaited<ReturnType<typeof composeNode>>;

/** The node has given its leases back by then; what is left are connections to servers that may not answer. */
const CLOSE_AT_MOST_MS = 1_000;

/** Of reads, and of sends: a thousand lanes with a transaction a second each need less than a request for ten of them. */
const REQUEST_EVERY_MS = 25;

/** Opens the adapters and builds a node on them. Where one fails to open, those opened before are closed again. */
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
    // Past any pooler: for what belongs to a session.
    const directUrl = config.directDatabaseUrl ?? databaseUrl;
    const direct = { directUrl, schema, clock: systemClock, entropy, telemetry };
    // Begun first: an earlier node's missing lock counts only while we hold one ourselves, and only at the second look that
    // misses it. The first look is made now; the rest of the start is done while the time between the two passes.
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
    /** The node first, then what it stood on. */
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

/** Alerts are kept for a while, for people who look later. */
function openTelemetry(sinks: readonly TelemetrySink[], mask: Mask) {
  const alerts = new RecentAlerts(systemClock);
  return { alerts, telemetry: createTelemetry([...sinks, (event) => alerts.hear(event)], mask) };
}

function settingsOf({ nodeId, mode, lease, writer, queueLimit, drainTimeoutMs, pools }: NodeParts["config"]) {
  return { nodeId, mode, lease, writer, queueLimit, drainTimeoutMs, pools };
}

/** Traces of transactions that another node saw created go on from what is kept with them. */
function traced(tracing: Extensions["tracing"], store: Pick<PostgresStore, "transaction">): { tracer?: Tracer } {
  if (tracing === undefined) return {};
  tracing.connect(async (txId) => traceparentIn((await store.transaction(txId))?.metadata ?? null));
  return { tracer: tracing.tracer };
}

function retaining({ retention }: NodeParts["config"], store: PostgresStore): Pick<NodePorts, "retention"> {
  return retention === null ? {} : { retention: { store, ...retention } };
}

type Resource = Pick<Extensions, "close">;

/** To be closed with the node, or at once where that will never be. */
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
  // One's own strategy stands in for the one of the settings, not for `off`.
  const own = settings.repricing === null ? {} : defined({ repricing });
  const heads = wsUrl === null ? null : keep(new NewHeads({ ...ports, url: wsUrl, clock: systemClock }));
  const hinted = heads === null ? {} : { hearHeads: (listener: () => void) => heads.subscribe(listener) };
  return { chain: { ...advised, ...hinted }, settings: { ...settings, ...own }, named: chainId !== null };
}

type OpenedChain = Awaited<ReturnType<typeof openChain>>;

/** A third of the speed is still the right signature: worth a word, not a refusal. */
function reportSlowSigning(telemetry: Telemetry): void {
  const message = "WebAssembly is not to be had here: signing in JavaScript, at about a third of the speed";
  telemetry.emit({ type: "alert", severity: "WARNING", code: "SLOW_SIGNING", message });
}

/** What whoever holds the keys checks; the policies in force are given to it once the node has read them. */
function signingBounds(opening: Promise<readonly OpenedChain[]>): Promise<SigningBounds> {
  const bounds = opening.then((chains) => {
    const ceilings = chains.map(({ chain: { chainId: id }, settings }) => [id, ceilingsOf(id, settings)] as const);
    return { ceilings: new Map(ceilings), policies: null };
  });
  // Where it fails, so do those; and a signing thread never asks for it.
  bounds.catch(() => undefined);
  return bounds;
}

/** One that fails to close does not keep the others open, and one that hangs does not keep the process. */
async function closeAll(resources: readonly Resource[]): Promise<void> {
  const closed = Promise.allSettled(resources.map((resource) => resource.close()));
  await bounded(systemClock, closed, systemClock.monotonicMs() + CLOSE_AT_MOST_MS);
}
