import { createEvmChain } from "../../adapters/evm/chain.ts";
import { createCodec } from "../../adapters/evm/codec/codec.ts";
import { openNewHeads } from "../../adapters/evm/rpc/new-heads.ts";
import { withNodeKeys } from "../../adapters/evm/signers/node-keys.ts";
import type { PeerReceiver } from "../../adapters/http/exchange/options.ts";
import { createHttpPeers } from "../../adapters/peers/http-peers.ts";
import { migrate } from "../../adapters/postgres/schema/migrate.ts";
import { PostgresSessionLock } from "../../adapters/postgres/session/session-lock.ts";
import { openPostgresStore, type PostgresStore } from "../../adapters/postgres/store.ts";
import { PostgresWakeUps } from "../../adapters/postgres/stores/wake-ups.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { createEntropy, createKeyPair, systemSecrets } from "../../adapters/system/entropy.ts";
import { createTelemetry, type TelemetrySink } from "../../adapters/system/telemetry.ts";
import { FencepostNode, type Patiently } from "../../application/loops/node.ts";
import { RecentAlerts } from "../../application/queries/node-reports.ts";
import { defined } from "../../domain/defined.ts";
import { ceilingsOf } from "../../domain/fees/ceilings.ts";
import type { SigningBounds } from "../../domain/keys/signing.ts";
import { createMask, type Mask } from "../../domain/text/mask.ts";
import { traceparentIn } from "../../domain/text/trace-context.ts";
import { bounded } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import { type Failpoints, noFailpoints } from "../../ports/failpoints.ts";
import type { Signer } from "../../ports/signer.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import { noWakeUps } from "../../ports/wake-ups.ts";
import type { ChainConfig, ConfigFor } from "../config/config.ts";
import { advisedChain, reportingRepricing } from "./advised-chain.ts";
import { awaitDatabase, type Patience } from "./await-database.ts";
import type { Extensions } from "./extensions.ts";
import { loadAbis } from "./load-abis.ts";
import { loadPolicies } from "./load-policies.ts";
import { maskedHook, maskedSigner } from "./masked-ports.ts";
import { openSigning } from "./open-signing.ts";
import { openWebhooks } from "./open-webhooks.ts";
import { serveOnlyKnown } from "./serve-chains.ts";
import { version } from "./version.ts";

export interface NodeParts {
  readonly config: ConfigFor<"start">;
  /** URL by which other nodes reach this one. The node does not write to the database before the URL is known. */
  readonly url: string | Promise<string>;
  readonly sinks: readonly TelemetrySink[];
  readonly failpoint?: Failpoints;
  readonly extensions: Extensions;
  /** How long and how to wait for the database. Absent: an unreachable database is an error at once. */
  readonly patience?: Patience;
  /** Called when the node is built, before other nodes can discover it: from here on, it must handle their requests. */
  readonly onBuilt?: (
    node: FencepostNode,
    parts: { readonly gate: Pick<PeerReceiver, "admit">; readonly store: PostgresStore },
  ) => void;
}

export type ComposedNode = Awaited<ReturnType<typeof composeNode>>;

/**
 * Maximum time to close connections. It is short, because leases are already released by then, and a remote server may
 * never respond.
 */
const CLOSE_AT_MOST_MS = 1_000;

/**
 * Minimum interval in ms between two requests to an endpoint, for reads and for sends separately. Calls in between are
 * collected into one JSON-RPC batch: with 1,000 lanes and a transaction per second on each, a request serves about ten
 * lanes.
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
    const alerts = new RecentAlerts(systemClock);
    const telemetry = createTelemetry([...parts.sinks, ...sinks, (event) => alerts.observe(event)], mask);
    const entropy = createEntropy(systemClock);
    const { databaseUrl, databaseSchema: schema, preparedStatements } = config;
    // URL that bypasses a transaction pooler, for session state (advisory locks, LISTEN).
    const directUrl = config.directDatabaseUrl ?? databaseUrl;
    const direct = { directUrl, schema, clock: systemClock, entropy, telemetry };
    // Open the session lock first. An earlier node counts as dead if its lock was found free twice, some time apart,
    // while this node holds its own lock. The first check is made now, the second at the end of the start.
    const sessionLock = keep(new PostgresSessionLock(direct));
    const opening = openChains(config, { telemetry, entropy, mask, keep }, repricing);
    const [policies, abis, signer, chains, url] = await Promise.all([
      loadPolicies(config),
      loadAbis(config),
      openSigning(config, { telemetry, entropy, bounds: signingBounds(opening) }).then(keep),
      opening,
      parts.url,
    ]);
    if (signer.curve === "javascript") reportSlowSigning(telemetry);
    const patiently: Patiently = (work) => (patience === undefined ? work() : awaitDatabase(work, patience));
    const database = { databaseUrl, schema };
    await patiently(() => migrate(database).then(() => serveOnlyKnown(database, chains, telemetry)));
    const codec = createCodec();
    const connecting = { ...database, preparedStatements, leaseDurationMs: config.lease.durationMs };
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
    const resources = { store, chains, signer: keyHolder(signer, chains, mask), peers, wakeUps, sessionLock };
    const system = { clock: systemClock, entropy, secrets: systemSecrets, telemetry, failpoint };
    const optional = {
      ...(stuckHook && { stuckHook: maskedHook(stuckHook, mask) }),
      ...(tracing && { tracer: traced(tracing, store) }),
      ...(config.retention && { retention: { store, ...config.retention } }),
    };
    const ports = { ...resources, policies, alerts, codec, ...system, ...optional, webhooks: openWebhooks(config) };
    const node = new FencepostNode(ports, { ...settingsOf(config), abis, url, version });
    parts.onBuilt?.(node, { gate: peers.gate, store });
    await node.start(patiently);
    /** Closes the node first, then its adapters. */
    const close = () => node.close().then(() => closeAll(opened));
    return { node, store, signer, chains: chains.map(({ chain }) => chain), tracing, close };
  } catch (error) {
    failed.abort();
    await closeAll(opened);
    throw error;
  }
}

/** The signer as the application gets it: with the keys of the chain nodes, and without secrets in its errors. */
function keyHolder(signer: Signer, chains: Parameters<typeof withNodeKeys>[1], mask: Mask): Signer {
  return maskedSigner(withNodeKeys(signer, chains), mask);
}

function settingsOf({
  nodeId,
  mode,
  lease,
  writer,
  queueLimit,
  drainTimeoutMs,
  pools,
  signerNames,
}: NodeParts["config"]) {
  return { nodeId, mode, lease, writer, queueLimit, drainTimeoutMs, pools, signerNames };
}

/**
 * Continues the traces of transactions created on other nodes: their trace context is in the transaction's metadata.
 */
function traced(tracing: NonNullable<Extensions["tracing"]>, store: PostgresStore) {
  tracing.connect(async (txId) => traceparentIn((await store.transaction(txId))?.metadata ?? null));
  return tracing.tracer;
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

function openChains({ chains, hookNetworks }: NodeParts["config"], ports: ChainPorts, own: Extensions["repricing"]) {
  const { keep, ...rest } = ports;
  const repricing = own && reportingRepricing(own, ports.telemetry);
  const open = async ({ chainId, rpcUrls, oracle, settings, wsUrl }: ChainConfig) => {
    const options = { ...rest, urls: rpcUrls, clock: systemClock, requestEveryMs: REQUEST_EVERY_MS };
    const chain = keep(await createEvmChain(chainId === null ? options : { ...options, chainId }));
    const advised = advisedChain(chain, { oracle, hookNetworks, telemetry: ports.telemetry });
    const heads = wsUrl === null ? null : keep(openNewHeads({ ...rest, url: wsUrl, clock: systemClock }));
    const hinted = heads && { onNewHead: (listener: () => void) => heads.subscribe(listener) };
    return {
      chain: { ...advised, ...hinted },
      // A custom repricing strategy replaces the configured one, but does not switch repricing on.
      settings: { ...settings, ...(settings.repricing !== null && defined({ repricing })) },
      named: chainId !== null,
    };
  };
  return Promise.all(chains.map(open));
}

/** Reports slow signing as a warning only: the signatures are correct. */
function reportSlowSigning(telemetry: Telemetry) {
  const message = "WebAssembly is not available: transactions are signed in JavaScript, at about a third of the speed";
  telemetry.emit({ type: "alert", severity: "WARNING", code: "SLOW_SIGNING", message });
}

/** Limits that the signing process enforces: the ceilings now, and the policies as soon as the node has read them. */
function signingBounds(opening: ReturnType<typeof openChains>): Promise<SigningBounds> {
  const bounds = opening.then((chains) => {
    const ceilings = chains.map(({ chain: { chainId: id }, settings }) => [id, ceilingsOf(id, settings)] as const);
    return { ceilings: new Map(ceilings), policies: null };
  });
  // Avoids an unhandled rejection of `bounds`: if keys are held in a thread, nothing awaits it. openChains reports the
  // failure.
  bounds.catch(() => undefined);
  return bounds;
}

/** Closes all resources within a time limit. If one fails to close or hangs, the others are still closed. */
async function closeAll(resources: readonly Resource[]) {
  const closed = Promise.allSettled(resources.map((resource) => resource.close()));
  await bounded(systemClock, closed, systemClock.monotonicMs() + CLOSE_AT_MOST_MS);
}
