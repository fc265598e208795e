/**
 * Gathers facts from the database, the chains, the keys and this machine, all in parallel. It draws no conclusions from
 * them.
 */
import { createServer } from "node:net";
import { examineEndpoint } from "../../adapters/evm/reads/examine-endpoint.ts";
import { openSigner } from "../../adapters/evm/signers/open-signer.ts";
import { examineDatabase } from "../../adapters/postgres/schema/examine.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { readEnvironment } from "../../adapters/system/environment.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { type ChainConfig, type Config, keySourcesIn } from "../config/config.ts";
import { advertisedUrl, literalHost } from "../node/advertised-url.ts";
import { version } from "../node/version.ts";

const PATIENCE_MS = 5_000;
/**
 * Maximum number of signers whose balance is read. Each balance costs a request, and a few are enough to show missing
 * funds.
 */
const MOST_BALANCES = 20;

/** Facts from which the doctor derives its findings. Tests construct facts and check the findings. */
export type Facts = Awaited<ReturnType<typeof gather>>;
export type ChainFacts = Facts["chains"][number];

export async function gather(config: Config) {
  const keys = await keysOf(config);
  const signers = keys.flatMap(({ addresses }) => addresses).slice(0, MOST_BALANCES);
  const { databaseUrl, directDatabaseUrl, databaseSchema: schema, lease, retention } = config;
  const [database, chains, face] = await Promise.all([
    databaseUrl === null ? null : examineDatabase({ databaseUrl, schema, clock: systemClock }),
    Promise.all(config.chains.map((chain) => chainOf(chain, signers))),
    faceOf(config),
  ]);
  const hasDirectUrl = directDatabaseUrl !== null;
  return {
    version,
    /** Facts about the database; null: no database is configured, which is reported separately. */
    database,
    hasDirectUrl,
    clockSkewAllowanceMs: lease.clockSkewMs,
    retention,
    chains,
    keys,
    face,
  };
}

async function chainOf({ chainId, rpcUrls, settings }: ChainConfig, signers: readonly string[]) {
  const asked = rpcUrls.map((url) => examineEndpoint({ url, signers, clock: systemClock, timeoutMs: PATIENCE_MS }));
  const usesPendingCount = settings.nonceChainQuery === "pending";
  return { chainId, finality: settings.finality, usesPendingCount, endpoints: await Promise.all(asked) };
}

/** Facts about one source of keys. */
interface KeySourceFacts {
  /** Name of the key source's setting. */
  readonly source: string;
  readonly addresses: readonly string[];
  /** Why the keys of this source cannot be used; null: they can. */
  readonly problem: string | null;
  readonly warnings: readonly string[];
}

/** Opens the key sources one by one, to find which one is wrong and which two have the same key. */
async function keysOf({ signers }: Config) {
  const facts: KeySourceFacts[] = [];
  // Open the sources in sequence: opening an encrypted file needs 256 MiB of memory.
  for (const source of keySourcesIn(signers)) facts.push(await keysIn(source, { [source]: signers[source] }));
  return facts;
}

async function keysIn(source: string, sources: Partial<Config["signers"]>): Promise<KeySourceFacts> {
  const warnings: string[] = [];
  const { variables } = readEnvironment();
  const warn = (line: string): void => void warnings.push(line);
  try {
    const signer = await openSigner({ sources, clock: systemClock, environment: variables, warn, startWorker: null });
    const addresses = signer.addresses();
    await signer.close();
    return { source, addresses, problem: null, warnings };
  } catch (error) {
    return { source, addresses: [], problem: messageOf(error), warnings };
  }
}

async function faceOf({ host, port, advertiseUrl, apiKeys }: Config) {
  const url = `http://${literalHost(host)}:${port}`;
  const listening = await listeningAt(host, port);
  return { host, port, listening, advertisedUrl: advertiseUrl ?? advertisedUrl(url), asksForKeys: apiKeys !== "none" };
}

/**
 * Result of an attempt to listen on an address. "fencepost": a node of ours listens there. "taken": another program
 * does.
 */
export type Listening = "free" | "fencepost" | "taken" | "forbidden" | "noSuchAddress";

const REFUSALS: Readonly<Record<string, Listening>> = {
  EACCES: "forbidden",
  EADDRNOTAVAIL: "noSuchAddress",
  ENOTFOUND: "noSuchAddress",
};

/** Tries to listen briefly on the address that a node would use. */
async function listeningAt(host: string, port: number) {
  const refusal = await new Promise<string | null>((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
  if (refusal === null) return "free";
  return REFUSALS[refusal] ?? ((await isFencepost(host, port)) ? "fencepost" : "taken");
}

async function isFencepost(host: string, port: number) {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : literalHost(host);
  try {
    const response = await fetch(`http://${reached}:${port}/healthz`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    return typeof ((await response.json()) as { readonly version?: unknown }).version === "string";
  } catch {
    return false;
  }
}
