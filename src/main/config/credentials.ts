/** Parsers of what is secret, or may carry a secret. None of their phrases repeats any part of the value. */
import { asText, matching, type Parser } from "./parsers.ts";

/** Order of secp256k1: a private key lies strictly between zero and this. */
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const MNEMONIC_LENGTHS = [12, 15, 18, 21, 24];

export type PrivateKey = `0x${string}`;

export const privateKey: Parser<PrivateKey, string> = (raw) => {
  const digits = /^(?:0x)?([0-9a-f]{64})$/i.exec(asText(raw) ?? "")?.[1]?.toLowerCase();
  if (digits === undefined) return { mistake: "a private key is 64 hex digits" };
  const value = BigInt(`0x${digits}`);
  if (value === 0n || value >= CURVE_ORDER) return { mistake: "not a key of secp256k1 (zero, or above its order)" };
  return { value: `0x${digits}` };
};

/** A file that cannot be read is named in an error: a key or a phrase, put here by mistake, must not be. */
export const keyFile: Parser<string, string> = (raw) => {
  const value = asText(raw) ?? "";
  if (/^(?:0x)?[\da-f]{64}$/i.test(value) || value.split(/\s+/).length >= 12) {
    return { mistake: "is a secret itself, not the name of a file that holds one" };
  }
  return value === "" ? { mistake: "is not the name of a file" } : { value };
};

/** In any casing; whether the chain node holds its key shows when it is asked to sign. */
export const address: Parser<`0x${string}`, string> = (raw) => {
  const digits = /^0x([0-9a-f]{40})$/i.exec(asText(raw) ?? "")?.[1]?.toLowerCase();
  return digits === undefined ? { mistake: "an address is 0x and 40 hex digits" } : { value: `0x${digits}` };
};

/** Words and checksum are judged where the keys are derived; here, only what a slip of the shell breaks. */
export const mnemonic: Parser<string, string> = (raw) => {
  const words = (asText(raw) ?? "").toLowerCase().split(/\s+/);
  const fits = MNEMONIC_LENGTHS.includes(words.length) && words.every((word) => /^[a-z]{3,8}$/.test(word));
  return fits ? { value: words.join(" ") } : { mistake: "is not a mnemonic (12, 15, 18, 21 or 24 English words)" };
};

/** BIP-32. Not secret; here beside the phrase that it belongs to. */
export const derivationPath = matching(
  /^m(?:\/(?:\d{1,10}|\{index\})'?){1,10}$/,
  "is not a derivation path (use m/44'/60'/0'/0, or m/44'/60'/{index}'/0/0)",
);

export interface ApiKey {
  readonly name: string;
  readonly secret: string;
}

/** `name:secret`. A scope narrows what a key may do, so one that is not enforced yet must not be taken silently. */
export const apiKey: Parser<ApiKey, string> = (raw) => {
  const [name = "", secret = "", scopes, ...rest] = (asText(raw) ?? "").split(":");
  if (!/^[\w.-]{1,64}$/.test(name) || !/^[\x21-\x7e]{1,256}$/.test(secret) || rest.length > 0) {
    return { mistake: "an API key is name:secret" };
  }
  if (scopes !== undefined) return { mistake: "scopes are not supported yet; use name:secret" };
  return { value: { name, secret } };
};

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

function urlOf(protocol: RegExp, mistake: string): Parser<string, string> {
  return (raw) => {
    const value = asText(raw) ?? "";
    return protocol.test(parseUrl(value)?.protocol ?? "") ? { value } : { mistake };
  };
}

const POSTGRES_RULE = "is not a PostgreSQL URL (use postgres://user:password@host:5432/database)";
export const databaseUrl = urlOf(/^postgres(ql)?:$/, POSTGRES_RULE);

export const endpointUrl = urlOf(/^https?:$/, "an endpoint begins with http:// or https://");

export const rpcUrl: Parser<string, string> = (raw) => {
  const isSocket = /^wss?:$/.test(parseUrl(asText(raw) ?? "")?.protocol ?? "");
  return isSocket ? { mistake: "WebSocket endpoints are not supported yet" } : endpointUrl(raw);
};

/** Where other nodes and callers reach this one: an origin, without path or credentials. */
export const originUrl: Parser<string, string> = (raw) => {
  const url = parseUrl(asText(raw) ?? "");
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.pathname === "/" && url.search === "";
  if (!isOrigin || url.username !== "" || url.password !== "") {
    return { mistake: "is not the URL of a node (use http://host:3000)" };
  }
  return { value: url.origin };
};

/** Literally as browsers send it: an extension's or an app's has a scheme of its own. */
export const webOrigin = matching(
  /^[a-z][a-z\d+.-]*:\/\/[^\s/@?#]+$/,
  "is not the origin of a web page (use https://wallet.example)",
);

export const hostName = matching(
  /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i,
  "is not a host (use relay.example or relay.example:3000)",
);

/** Chat services put their token into the path. */
export const webhookUrl = urlOf(/^https?:$/, "is not an http:// or https:// URL");

/** What a hook decides is signed and sent. So its URL must be one where no third party can listen or answer (HTTPS, loopback). */
export const hookPlace: Parser<string, string> = (raw) => {
  const value = asText(raw) ?? "";
  if (value === "") return { mistake: "is neither a module nor a URL" };
  const url = /^[a-z]+:\/\//i.test(value) ? parseUrl(value) : undefined;
  if (url === undefined) return { value };
  const isLocal = url !== null && ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLocal)) return { value };
  return { mistake: "is neither a module's path nor an https:// URL (http:// only on this machine)" };
};

export function parseUrl(value: string): URL | null {
  return URL.canParse(value) ? new URL(value) : null;
}
