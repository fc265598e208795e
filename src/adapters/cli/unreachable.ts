/** Says why a node could not be reached: nothing listens, the other scheme is spoken there, or the name is wrong. */
import type { FencepostApiError } from "../../client/index.ts";

/** Result of a failed connection, by what the user has to change. */
export type Unreachable =
  | "nothing-listens"
  | "no-such-host"
  | "untrusted"
  | "other-scheme"
  | "other-protocol"
  | "silent";

const BY_CODE: Readonly<Record<string, Unreachable>> = {
  ECONNREFUSED: "nothing-listens",
  ENOTFOUND: "no-such-host",
  EAI_AGAIN: "no-such-host",
  CERT_HAS_EXPIRED: "untrusted",
  DEPTH_ZERO_SELF_SIGNED_CERT: "untrusted",
  SELF_SIGNED_CERT_IN_CHAIN: "untrusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "untrusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "untrusted",
  ERR_TLS_CERT_ALTNAME_INVALID: "untrusted",
};

/** Errors of OpenSSL and of Node's HTTP parser if one side speaks TLS and the other does not, or neither HTTP. */
const GARBLED = /^(ERR_SSL_|EPROTO|HPE_|UND_ERR_SOCKET|ECONNRESET|EPIPE)/;
/** Bodies of nginx, Go and Node's proxies if plain HTTP arrives at a TLS port. */
const PLAIN_TO_TLS = /plain HTTP request was sent to HTTPS|HTTP request to an HTTPS server/i;

/** The first error code of Node.js among the causes; null if there is none. */
export function causeCode(error: unknown): string | null {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    const [inner] = each instanceof AggregateError ? each.errors : [];
    const { code } = (inner ?? each) as { readonly code?: unknown };
    if (typeof code === "string" && code !== "UNREACHABLE") return code;
  }
  return null;
}

/** True if the answer was no HTTP. The package undici, which replaces the dispatcher of `fetch`, gives no error code. */
function isUnparsed(error: unknown): boolean {
  return error instanceof Error && (error.name === "HTTPParserError" || isUnparsed(error.cause));
}

/**
 * Classifies a failed call. `answers` checks whether an HTTP server answers at a URL: it is asked for the same address
 * with the other scheme, because TLS and HTTP fail with many different errors at each other's ports.
 */
export async function whyUnreachable(
  error: FencepostApiError,
  url: string,
  answers: (url: string) => Promise<boolean>,
): Promise<Unreachable | null> {
  const isRedirect = error.status >= 300 && error.status < 400;
  if (error.code === "UNEXPECTED_ANSWER") {
    if (!url.startsWith("http:") || !(isRedirect || PLAIN_TO_TLS.test(error.detail))) return null;
    return (await answers(otherScheme(url))) ? "other-scheme" : null;
  }
  if (error.code !== "UNREACHABLE") return null;
  const code = causeCode(error) ?? "";
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  if (!GARBLED.test(code) && !isUnparsed(error)) return "silent";
  return (await answers(otherScheme(url))) ? "other-scheme" : "other-protocol";
}

/** True if the connection failed before a request could be sent: the node has accepted nothing. */
export function isUnsent(error: FencepostApiError): boolean {
  return BY_CODE[causeCode(error) ?? ""] !== undefined;
}

export function otherScheme(url: string): string {
  return url.startsWith("https:") ? url.replace("https:", "http:") : url.replace("http:", "https:");
}

export function unreachableLine(why: Unreachable, url: string, code: string | null): string {
  const place = `${url}${code === null ? "" : ` (${code})`}`;
  const lines: Readonly<Record<Unreachable, string>> = {
    "nothing-listens": `nothing listens at ${url}: start a node there, or name another one with --url or --profile`,
    "no-such-host": `there is no host of this name: ${url}; is the URL right, and the name server reachable?`,
    untrusted: `the certificate of ${place} is not trusted: name its authority with NODE_EXTRA_CA_CERTS`,
    "other-scheme": `${url} speaks ${otherScheme(url).split(":")[0]}: use ${otherScheme(url)}`,
    "other-protocol": `${place} is not a node: something listens there and does not speak ${url.split(":")[0]}`,
    silent: `${place} does not answer: is the address right, and is there a firewall in between?`,
  };
  return lines[why];
}
