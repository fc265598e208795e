/** Asks database, chains, keys and this machine, all at once, and concludes nothing. */

import { createServer } from "node:net";
import { examineEndpoint } from "../../adapters/evm/reads/examine-endpoint.ts";
import { openSigner } from "../../adapters/evm/signers/open-signer.ts";
import { examineDatabase } from "../../adapters/postgres/schema/examine.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { readEnvironment } from "../../adapters/system/environment.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import type { Config } from "../config/config.ts";
import { advertisedUrl, literalHost } from "../node/advertised-url.ts";
import { version } from "../node/version.ts";
import type { ChainFacts, FaceFacts, Facts, KeySourceFacts, Listening } from "./facts.ts";

const PATIENCE_MS = 5_000;
/** Each balance is a request: enough to see a habit. */
const MOST_BALANCES = 20;

/** `mistakes`: what `start` would complain about. `config` null: so wrong that nothing could be looked at. */
export async function gather(config: Config | null, mistakes: readonly string[]): Promise<Facts> {
  const nodeVersion = process.versions.node;
  if (config === null) return { ...NOTHING, nodeVersion, version, mistakes };
  const keys = await keysOf(config);
  const signers = keys.flatMap(({ addresses }) => addresses).slice(0, MOST_BALANCES);
  const { databaseUrl, directDatabaseUrl, databaseSchema: schema, lease, retention } = config;
  const [database, chains, face] = await Promise.all([
    databaseUrl === null ? null : examineDatabase({ databaseUrl, schema, clock: systemClock }),
    Promise.all(config.chains.map((chain) => chainOf(chain, signers))),
    faceOf(config),
  ]);
  const hasDirectUrl = directDatabaseUrl !== null;
  const clockSkewAllowanceMs = lease.clockSkewMs;
  const kept = { hasDirectUrl, clockSkewAllowanceMs, retention };
  return { nodeVersion, version, mistakes, database, ...kept, chains, keys, face };
}

const NOTHING: Omit<Facts, "nodeVersion" | "version" | "mistakes"> = {
  database: null,
  hasDirectUrl: false,
  clockSkewAllowanceMs: 0,
  retention: null,
  chains: [],
  keys: [],
  face: { host: "127.0.0.1", port: 0, listening: "free", advertisedUrl: "http://127.0.0.1", asksForKeys: true },
};

async function chainOf(
  { chainId, rpcUrls, settings }: Config["chains"][number],
  signers: readonly string[],
): Promise<ChainFacts> {
  const asked = rpcUrls.map((url) => examineEndpoint({ url, signers, clock: systemClock, timeoutMs: PATIENCE_MS }));
  const usesPendingCount = settings.nonceChainQuery === "pending";
  return { chainId, finality: settings.finality, usesPendingCount, endpoints: await Promise.all(asked) };
}

/** Source by source: which one is wrong, and which two have the same key. */
async function keysOf({ signers }: Config): Promise<readonly KeySourceFacts[]> {
  const given = Object.entries(signers).filter(([, source]) =>
    Array.isArray(source) ? source.length > 0 : source !== null,
  );
  const facts: KeySourceFacts[] = [];
  // One after the other: opening an encrypted file takes 256 MiB.
  for (const [source, value] of given) facts.push(await keysIn(source, { [source]: value }));
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

async function faceOf({ host, port, advertiseUrl, apiKeys }: Config): Promise<FaceFacts> {
  const url = `http://${literalHost(host)}:${port}`;
  const listening = await listeningAt(host, port);
  return { host, port, listening, advertisedUrl: advertiseUrl ?? advertisedUrl(url), asksForKeys: apiKeys !== "none" };
}

const REFUSALS: Readonly<Record<string, Listening>> = {
  EACCES: "forbidden",
  EADDRNOTAVAIL: "noSuchAddress",
  ENOTFOUND: "noSuchAddress",
};

/** Listens for a moment where a node would. */
async function listeningAt(host: string, port: number): Promise<Listening> {
  const refusal = await new Promise<string | null>((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
  if (refusal === null) return "free";
  return REFUSALS[refusal] ?? ((await isFencepost(host, port)) ? "fencepost" : "taken");
}

async function isFencepost(host: string, port: number): Promise<boolean> {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : literalHost(host);
  try {
    const response = await fetch(`http://${reached}:${port}/healthz`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    return typeof ((await response.json()) as { readonly version?: unknown }).version === "string";
  } catch {
    return false;
  }
}
