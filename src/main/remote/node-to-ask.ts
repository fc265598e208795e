/**
 * Chooses the node that a command calls, and the API key. Precedence: a flag, a named profile, the configuration of
 * this directory, the profile in use, the default port on this machine. A profile's key is sent only to the profile's
 * own URL. Mistakes in the configuration stop only a command that leaves the choice of the node to it.
 */
import { CommandFailed, EXIT_CODES, misused } from "../../adapters/cli/failure.ts";
import { checkedUrl, type Profile, type ProfileActions, unknownProfile } from "../../adapters/cli/profiles.ts";
import type { RemoteActions, RemoteOptions } from "../../adapters/cli/remote.ts";
import { causeCode } from "../../adapters/cli/unreachable.ts";
import { defined } from "../../domain/defined.ts";
import { USUAL_SCOPES } from "../../domain/keys/principal.ts";
import type { ApiKey } from "../config/credentials.ts";
import type { Reach } from "../config/resolve.ts";
import { advertisedUrl, literalHost } from "../node/advertised-url.ts";
import { misuse } from "./misuse.ts";
import { NO_PROFILES } from "./profile-file.ts";

interface Sources extends Pick<ProfileActions, "readProfiles"> {
  /** Loads the settings of this directory and environment that name a node. */
  load(options: RemoteOptions): Promise<Reach>;
}

export async function nodeToAsk(options: RemoteOptions, { load, readProfiles }: Sources): Promise<Profile> {
  const { profile, apiKey } = options;
  const url = options.url === undefined ? undefined : checkedUrl(options.url);
  const key = defined({ apiKey });
  if (profile !== undefined) {
    if (url !== undefined) throw misused("--url and --profile both name a node: give only one of them");
    const { profiles } = await readProfiles();
    if (!Object.hasOwn(profiles, profile)) throw misuse(unknownProfile(profile, Object.keys(profiles)));
    return { ...(profiles[profile] as Profile), ...key };
  }
  if (url !== undefined && apiKey !== undefined) return { url, apiKey };
  const reach = await load(options);
  // A mistake leaves open which node is meant, unless the command names one.
  if (url === undefined && reach.mistakes.length > 0) throw unclear(reach.mistakes);
  const configured = configuredNode(reach);
  const isConfigured = reach.isConfigured || options.config !== undefined;
  const { current, profiles } = isConfigured ? NO_PROFILES : await readProfiles();
  const inUse = current === null ? undefined : profiles[current];
  if (url === undefined) return { ...(inUse ?? configured), ...key };
  if (inUse !== undefined) return sameOrigin(url, inUse.url) ? { ...inUse, url } : { url };
  return { ...configured, url };
}

function unclear(mistakes: readonly string[]) {
  const advice =
    "which node is meant is not clear: correct the configuration, or name the node with --url or --profile";
  return new CommandFailed([...mistakes, advice], EXIT_CODES.misused);
}

/** URL and key of the configured node. The admin address is preferred: it serves every route. */
function configuredNode({ values }: Reach): Profile {
  const { adminPort, adminHost } = values;
  const { host, port } = adminPort === null ? values : { host: adminHost ?? values.host, port: adminPort };
  const url = values.advertiseUrl ?? advertisedUrl(`http://${literalHost(host)}:${port}`);
  const apiKey = strongestKey(values.apiKeys ?? [])?.secret;
  return { url, ...defined({ apiKey }) };
}

/** The first key with the most scopes: operator commands need more scopes than callers do. */
function strongestKey(keys: readonly ApiKey[]): ApiKey | undefined {
  const scopesOf = ({ scopes = USUAL_SCOPES }: ApiKey) => scopes.length;
  return keys.toSorted((a, b) => scopesOf(b) - scopesOf(a))[0];
}

function sameOrigin(one: string, other: string) {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).origin === new URL(other).origin;
}

const TIMEOUT_MS = 30_000;

/** Sends commands to the chosen node. `hide` masks the API key in all output. */
export function remoteActions(sources: Sources, hide: (secrets: readonly string[]) => void): RemoteActions {
  const profileOf = async (options: RemoteOptions) => {
    const node = await nodeToAsk(options, sources);
    if (node.apiKey !== undefined) hide([node.apiKey]);
    return node;
  };
  return {
    async connect(options) {
      const { createClient } = await import("../../client/index.ts");
      return createClient({ ...(await profileOf(options)), repeat: false });
    },
    async look(options, path) {
      return lookAt(await profileOf(options), path);
    },
    async chosen(options) {
      const { url, apiKey } = await profileOf(options);
      if (apiKey !== undefined) return { url, keyFrom: await keySource(options, apiKey, sources), ignored: [] };
      const ignored = options.profile === undefined ? (await sources.load(options)).mistakes : [];
      return { url, keyFrom: null, ignored };
    },
    answers,
  };
}

/** Source of the key that was sent, for an error message. */
async function keySource(options: RemoteOptions, apiKey: string, { load, readProfiles }: Sources) {
  if (options.apiKey !== undefined) return "--api-key";
  if (options.profile !== undefined) return `the profile ${options.profile}`;
  if (configuredNode(await load(options)).apiKey === apiKey) return "the configuration (FENCEPOST_API_KEYS)";
  return `the profile ${(await readProfiles()).current}`;
}

const PROBE_MS = 3_000;

/** A certificate that is not trusted is an answer too: something speaks TLS there. */
async function answers(url: string) {
  try {
    await fetch(`${url.replace(/\/+$/, "")}/healthz`, { redirect: "manual", signal: AbortSignal.timeout(PROBE_MS) });
    return true;
  } catch (error) {
    return /CERT|SELF_SIGNED|ISSUER|LEAF_SIGNATURE/.test(causeCode(error) ?? "");
  }
}

async function lookAt({ url, apiKey }: Profile, path: string) {
  const { FencepostApiError } = await import("../../client/index.ts");
  const place = `${url.replace(/\/+$/, "")}${path}`;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const response = await fetch(place, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) }).catch((cause: unknown) => {
    throw new FencepostApiError({ code: "UNREACHABLE", status: 0, detail: `${url} does not answer` }, { cause });
  });
  const text = await response.text();
  if (response.headers.get("content-type")?.startsWith("application/problem+json") !== true) {
    return { status: response.status, text };
  }
  const problem = JSON.parse(text);
  throw new FencepostApiError(problem, { problem });
}
