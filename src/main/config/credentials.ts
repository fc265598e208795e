/**
 * Parsers of settings that are secret or may contain a secret. Messages about mistakes never repeat any part of the
 * value.
 */
import {
  SEND_RULES,
  type SendRule,
  sendRuleOf,
  withoutSendRule,
  withSendRule,
} from "../../adapters/evm/rpc/send-rule.ts";
import { isNetwork } from "../../adapters/webhooks/networks.ts";
import { KEY_NAME, type Quotas, SCOPES, type Scope } from "../../domain/keys/principal.ts";
import type { Address } from "../../domain/lane.ts";
import { MOST_MEMBERS, POOL_NAME, type Pools } from "../../domain/nonces/pool.ts";
import { asText, chainId, choice, gwei, list, matching, type Parser, rate, reading, share } from "./parsers.ts";

/** Order of secp256k1: a private key is greater than zero and less than this number. */
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const MNEMONIC_LENGTHS = [12, 15, 18, 21, 24];

export type PrivateKey = `0x${string}`;

export const privateKey: Parser<PrivateKey, PrivateKey> = (raw) => {
  const digits = /^(?:0x)?([0-9a-f]{64})$/i.exec(asText(raw) ?? "")?.[1]?.toLowerCase();
  if (digits === undefined) return { mistake: "a private key is 64 hex digits" };
  const value = BigInt(`0x${digits}`);
  if (value === 0n || value >= CURVE_ORDER) return { mistake: "not a key of secp256k1 (zero, or above its order)" };
  return { value: `0x${digits}` };
};

/**
 * Path of a key file. An error about an unreadable file names its path, so a key or phrase that was set here by mistake
 * is refused without quoting it.
 */
export const keyFile: Parser<string, string> = (raw) => {
  const value = asText(raw) ?? "";
  if (/^(?:0x)?[\da-f]{64}$/i.test(value) || value.split(/\s+/).length >= 12) {
    return { mistake: "is a secret itself, not the name of a file that holds one" };
  }
  return value === "" ? { mistake: "is not the name of a file" } : { value };
};

/**
 * Parses an address in any casing. Whether the RPC node holds its key is not checked here: if not, the first signature
 * fails.
 */
export const address = reading<`0x${string}`>(
  (text) => (/^0x[0-9a-f]{40}$/i.test(text) ? (text.toLowerCase() as `0x${string}`) : null),
  "an address is 0x and 40 hex digits",
);

/**
 * A mnemonic. This check only catches shell quoting errors; words and checksum are checked when the keys are derived.
 */
export const mnemonic = reading((text) => {
  const words = text.toLowerCase().split(/\s+/);
  const fits = MNEMONIC_LENGTHS.includes(words.length) && words.every((word) => /^[a-z]{3,8}$/.test(word));
  return fits ? words.join(" ") : null;
}, "is not a mnemonic (12, 15, 18, 21 or 24 English words)");

/** A BIP-32 derivation path. */
export const derivationPath = matching(
  /^m(?:\/(?:\d{1,10}|\{index\})'?){1,10}$/,
  "is not a derivation path (use m/44'/60'/0'/0, or m/44'/60'/{index}'/0/0)",
);

export interface ApiKey extends Partial<Quotas> {
  /** Name of the API key, kept with everything that it asks for. */
  readonly name: string;
  /** Secret of the API key, of at least 22 characters. */
  readonly secret: string;
  /** What the API key may do; without it, `read` and `submit`. */
  readonly scopes?: readonly Scope[];
  /** The only signers that the API key may see and use. */
  readonly signers?: readonly Address[];
  /** The only chains that the API key may see and use. */
  readonly chains?: readonly number[];
}

const KEY_FORM = "an API key is name:secret or name:secret:scope+scope, or an object with name and secret";
/**
 * Minimum length of an API key's secret: 22 characters of base64url are 128 bits. A shorter secret could be found from
 * its digest by brute force.
 */
const LEAST_SECRET = 22;

const KEY_LIMITS = {
  scopes: list(choice(...SCOPES)),
  signers: list(address),
  chains: list(chainId),
  createsPerSecond: rate,
  readsPerSecond: rate,
  queueShare: share,
};

export const apiKey: Parser<ApiKey, string | ApiKey> = (raw) => {
  const written = typeof raw === "object" && raw !== null ? raw : splitKey(asText(raw) ?? "");
  const { name, secret, ...limits } = written as Readonly<Record<string, unknown>>;
  const isKnown = Object.keys(limits).every((limit) => Object.hasOwn(KEY_LIMITS, limit));
  if (!isKnown || typeof name !== "string" || typeof secret !== "string") return { mistake: KEY_FORM };
  if (!KEY_NAME.test(name) || !/^[\x21-\x7e]{1,256}$/.test(secret)) return { mistake: KEY_FORM };
  if (secret.length < LEAST_SECRET) {
    return { mistake: `the secret of an API key has at least ${LEAST_SECRET} characters (openssl rand -base64 24)` };
  }
  const value: Record<string, unknown> & ApiKey = { name, secret };
  for (const [limit, parse] of Object.entries<Parser<unknown>>(KEY_LIMITS)) {
    if (limits[limit] === undefined) continue;
    const parsed = parse(limits[limit]);
    if ("mistake" in parsed) return { mistake: `the ${limit} of an API key: ${parsed.mistake}` };
    value[limit] = parsed.value;
  }
  return { value };
};

function splitKey(text: string) {
  const [name, secret, scopes, ...more] = text.split(":");
  return { name, secret, ...(scopes !== undefined && { scopes: scopes.split("+") }), ...(more.length > 0 && { more }) };
}

/** The cluster secret. It must be long, because an attacker who guesses it can act as any node. */
export const clusterSecret = matching(
  /^[\x21-\x7e]{22,256}$/,
  "a cluster secret has at least 22 characters and no spaces",
);

export const awsKeyId = matching(
  /^(?:arn:aws[\w-]*:kms:[\w-]+:\d+:(?:key|alias)\/[\w/-]+|alias\/[\w/-]+|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|mrk-[\da-f]{32})$/,
  "is not a key of AWS KMS (an id, an ARN, or alias/name)",
);

export const gcpKeyVersion = matching(
  /^projects\/[^/\s]+\/locations\/[^/\s]+\/keyRings\/[^/\s]+\/cryptoKeys\/[^/\s]+\/cryptoKeyVersions\/\d+$/,
  "is not a key version of Google Cloud KMS (projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/1)",
);

export const vaultPath = matching(
  /^[\w.-]+(?:\/[\w.-]+)+$/,
  "is not the path of a secret in Vault (secret/data/name for version 2 of the KV engine)",
);

function urlOf(protocol: RegExp, mistake: string) {
  return reading((text) => (protocol.test(parseUrl(text)?.protocol ?? "") ? text : null), mistake);
}

export const databaseUrl = urlOf(
  /^postgres(ql)?:$/,
  "is not a PostgreSQL URL (use postgres://user:password@host:5432/database)",
);

export const endpointUrl = urlOf(/^https?:$/, "an endpoint begins with http:// or https://");

/** An endpoint in a configuration file: its URL, and whether transactions are sent to it. */
export interface EndpointEntry {
  /** URL of the endpoint: http or https. */
  readonly url: string;
  /** `only`: a private endpoint, for sends alone. `never`: for reads alone. */
  readonly send?: SendRule;
}

/**
 * An endpoint's URL, optionally with `#send=only` or `#send=never`. An object `{ url, send }` is converted to such a
 * URL.
 */
export const rpcUrl: Parser<string, string | EndpointEntry> = (raw) => {
  const entry = typeof raw === "object" && raw !== null ? (raw as Partial<EndpointEntry>) : null;
  const unknown = Object.keys(entry ?? {}).find((key) => key !== "url" && key !== "send");
  if (unknown !== undefined) return { mistake: `an endpoint has no ${unknown} (use url and send)` };
  const given = entry === null ? raw : entry.url;
  if (/^wss?:$/.test(parseUrl(asText(given) ?? "")?.protocol ?? "")) {
    return { mistake: "is a WebSocket: name it in FENCEPOST_WS_URL, beside an http(s) URL" };
  }
  const url = endpointUrl(given);
  if ("mistake" in url) return url;
  const send = entry?.send ?? sendRuleOf(url.value);
  if (send === null || !SEND_RULES.includes(send)) {
    return { mistake: "send is one of yes, only and never (in a URL: #send=only behind it)" };
  }
  return { value: withSendRule(url.value, send) };
};

const everyRpcUrl = list(rpcUrl, withoutSendRule);

/** The endpoints of one chain, of which at least one must accept transactions. */
export const rpcUrls: typeof everyRpcUrl = (raw) => {
  const urls = everyRpcUrl(raw);
  if ("mistake" in urls || urls.value.some((url) => sendRuleOf(url) !== "never")) return urls;
  return { mistake: "has send: never for every endpoint: no transaction could be sent" };
};

export const socketUrl = urlOf(/^wss?:$/, "is not a ws:// or wss:// URL");

/** Advertised URL of a node: an origin, without path or credentials. */
export const originUrl = reading((text) => {
  const url = parseUrl(text);
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.pathname === "/" && url.search === "";
  return isOrigin && url.username === "" && url.password === "" ? url.origin : null;
}, "is not the URL of a node (use http://host:3000)");

/** An Origin header exactly as browsers send it. Browser extensions and apps use other schemes than http. */
export const webOrigin = matching(
  /^[a-z][a-z\d+.-]*:\/\/[^\s/@?#]+$/,
  "is not the origin of a web page (use https://wallet.example)",
);

export const hostName = matching(
  /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i,
  "is not a host (use relay.example or relay.example:3000)",
);

export const network = reading(
  (text) => (isNetwork(text) ? text : null),
  "is not an address or a network (use 127.0.0.1 or 10.0.0.0/8)",
);

export const webhookUrl = urlOf(/^https?:$/, "is not an http:// or https:// URL");

const HOOK_RULE = "is neither a module's path nor an https:// URL (http:// only on this machine)";

/**
 * The stuck hook: a module's path or a URL. Its decisions are signed and sent, so its response must not be readable or
 * forgeable in transit: a URL must use HTTPS or be on a loopback address.
 */
export const hookPlace: Parser<string, string> = (raw) => {
  const value = asText(raw) ?? "";
  if (value === "") return { mistake: "is neither a module nor a URL" };
  // Refuse a URL with a typing error in its scheme. Otherwise it would count as a module's path, and the error of the
  // failed import would quote it.
  if (/^https?:(?!\/\/)/i.test(value)) return { mistake: HOOK_RULE };
  const url = /^[a-z]+:\/\//i.test(value) ? parseUrl(value) : undefined;
  if (url === undefined) return { value };
  const isLocal = url !== null && ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLocal)) return { value };
  return { mistake: HOOK_RULE };
};

/**
 * A gas oracle: a fixed price or an HTTPS URL. Plain HTTP is refused, because a third party could change the price in
 * transit, even if only up to the ceilings.
 */
export const gasOracle = reading((text) => {
  const parts = text.split("/");
  const isFixed = parts.length <= 2 && parts.every((part) => "value" in gwei(part));
  return isFixed || (/^https?:\/\//i.test(text) && "value" in hookPlace(text)) ? text : null;
}, "is neither an https:// URL (http:// only on this machine) nor gwei such as 30 or 30/1.5");

export function parseUrl(value: string): URL | null {
  return URL.canParse(value) ? new URL(value) : null;
}

type WrittenPools = Readonly<Record<string, Address | readonly Address[]>>;

/** Signers by the name of their pool: an object in a file, `payouts=0x…+0x…,refunds=0x…` in a variable. */
export const pools: Parser<Pools, WrittenPools | string> = (raw) => {
  const written = typeof raw === "string" ? parsePools(raw) : raw;
  if (typeof written !== "object" || written === null || Array.isArray(written)) {
    return { mistake: "is not a list of pools (use payouts=0x…+0x…)" };
  }
  const found = new Map<string, readonly Address[]>();
  for (const [name, signers] of Object.entries(written)) {
    const parsed = pool(name, signers);
    if ("mistake" in parsed)
      return { mistake: `is wrong at ${POOL_NAME.test(name) ? name : "a name"}: ${parsed.mistake}` };
    found.set(name, parsed.value);
  }
  return found.size === 0 ? { mistake: "names no pool" } : { value: found };
};

export function showPools(all: Pools): string {
  return [...all].map(([name, signers]) => `${name}=${signers.join("+")}`).join(", ");
}

function pool(name: string, signers: unknown) {
  if (!POOL_NAME.test(name)) return { mistake: "a pool's name has up to 64 letters, digits, . _ and -" };
  const parsed = list(address)(signers);
  if ("mistake" in parsed || parsed.value.length <= MOST_MEMBERS) return parsed;
  return { mistake: `has more than ${MOST_MEMBERS} signers` };
}

/** Parses the pools of an environment variable; null if a pool has no signers or occurs twice. */
function parsePools(text: string): Readonly<Record<string, readonly string[]>> | null {
  const parts = text.split(",").map((part) => part.split("=").map((word) => word.trim()));
  const names = new Set(parts.map(([name]) => name));
  if (names.size < parts.length || parts.some((part) => part.length !== 2)) return null;
  return Object.fromEntries(parts.map(([name = "", signers = ""]) => [name, signers.split("+")]));
}

/** Signers by name: an object in a file, `payouts-1=0x…,payouts-2=0x…` in a variable. */
export const signerNames: Parser<ReadonlyMap<Address, string>, Readonly<Record<string, Address>>> = (raw) => {
  const written = typeof raw === "string" ? parsePools(raw) : raw;
  if (typeof written !== "object" || written === null || Array.isArray(written)) {
    return { mistake: "is not a list of names (use payouts-1=0x…,payouts-2=0x…)" };
  }
  const names = new Map<Address, string>();
  for (const [name, signers] of Object.entries(written)) {
    const parsed = POOL_NAME.test(name)
      ? list(address)(signers)
      : { mistake: "a name has up to 64 letters, digits, . _ and -" };
    const [signer, second] = "mistake" in parsed ? [] : parsed.value;
    const mistake = "mistake" in parsed ? parsed.mistake : second === undefined ? null : "it names several signers";
    if (signer === undefined || mistake !== null) {
      return { mistake: `is wrong at ${POOL_NAME.test(name) ? name : "a name"}: ${mistake ?? "it names no signer"}` };
    }
    if (names.has(signer)) return { mistake: `is wrong at ${name}: its signer has two names` };
    names.set(signer, name);
  }
  return names.size === 0 ? { mistake: "names no signer" } : { value: names };
};

export function showSignerNames(names: ReadonlyMap<Address, string>): string {
  return [...names].map(([signer, name]) => `${name}=${signer}`).join(", ");
}
