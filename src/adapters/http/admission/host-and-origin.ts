/**
 * Checks the Host and Origin headers. A malicious web page can resolve its own name to 127.0.0.1 (DNS rebinding) or
 * post across origins. A page cannot choose these headers, so on a node without API keys only they distinguish a page's
 * requests from the developer's.
 */
import { isIP } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { invalid } from "../../../domain/errors.ts";
import { forbidden } from "../../../domain/keys/principal.ts";

export interface WireOptions {
  /**
   * Accepted Host headers. A name without a port matches every port. "own": the listed addresses and the loopback ones
   * (localhost, 127.0.0.1, [::1]). "any": unchecked.
   */
  readonly hosts: readonly string[] | { readonly own: readonly string[] } | "any";
  /** Origins of pages that may call this node, as browsers send them: `https://wallet.example`. */
  readonly origins: readonly string[];
}

/** Properties of a route that decide how its Host and Origin are checked. */
export interface Entry {
  /** True if the route needs no API key and returns nothing that a foreign page must not read. */
  readonly open: boolean;
  /** True if the route is called by probes under any host name, or by other nodes with their own secret. */
  readonly anyHost: boolean;
}

/**
 * Checks a request's Host and Origin. Throws FORBIDDEN if the request is not allowed. Returns false if it was a CORS
 * preflight, which is answered here.
 */
export type Wire = (request: FastifyRequest, reply: FastifyReply, entry: Entry) => boolean;

const WILDCARDS = new Set(["0.0.0.0", "::", "[::]"]);
const PREFLIGHT = {
  "access-control-allow-methods": "GET, POST, PUT, DELETE",
  "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id",
  "access-control-max-age": "600",
};
const EXPOSED = "location, retry-after, ratelimit, ratelimit-policy, fencepost-owner, www-authenticate";

export function wire({ hosts, origins }: WireOptions): Wire {
  const isKnown = hosts === "any" ? () => true : hostCheck(hosts);
  const listed = new Set(origins);
  return ({ headers, method }, reply, { open, anyHost }) => {
    const { host = "", origin } = headers;
    if (!anyHost && !isKnown(host)) {
      throw forbidden("host", `this node does not accept the host ${quoted(host)}: see FENCEPOST_ALLOWED_HOSTS`);
    }
    if (listed.size > 0) reply.header("vary", "origin");
    if (origin === undefined) return true;
    if (listed.has(origin)) {
      reply.headers({ "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED });
      if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) return true;
      void reply.code(204).headers(PREFLIGHT).send();
      return false;
    }
    if (open || isSame(origin, host)) return true;
    throw forbidden("origin", `web pages of ${quoted(origin)} may not use this node: see FENCEPOST_ALLOWED_ORIGINS`);
  };
}

/**
 * Throws INVALID_REQUEST for two Host headers (RFC 9112, 3.2), even if they are equal: a proxy may check one of them
 * and Node use the other.
 */
export function refuseTwoHosts(rawHeaders: readonly string[]): void {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host" && ++hosts > 1)
      throw invalid("host", "the Host header is given twice");
  }
}

/** True if the page's origin is the host that it calls. The scheme is ignored, because a proxy may terminate TLS. */
function isSame(origin: string, host: string) {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: own } = new URL(origin);
  return own !== "" && own === hostOf(host, protocol)?.host;
}

function hostCheck(hosts: Exclude<WireOptions["hosts"], "any">): (host: string) => boolean {
  const names = "own" in hosts ? ["localhost", "127.0.0.1", "[::1]", ...hosts.own] : hosts;
  const known = new Set(names.map((name) => hostOf(name)?.host));
  // A node that listens on a wildcard address accepts any IP address as Host: DNS rebinding needs a name.
  const anyAddress = "own" in hosts && hosts.own.some((name) => WILDCARDS.has(name));
  const isKnown = (given: string) => {
    const url = hostOf(given);
    if (url === null) return false;
    if (known.has(url.hostname) || known.has(url.host)) return true;
    if ("own" in hosts && url.hostname.endsWith(".localhost")) return true;
    return anyAddress && isIP(url.hostname.replace(/^\[|\]$/g, "")) !== 0;
  };
  // Cache of the last accepted host, because callers use the same host for many requests.
  let last = "";
  return (given) => {
    if (given !== "" && given === last) return true;
    if (!isKnown(given)) return false;
    last = given;
    return true;
  };
}

/** Normalizes a host as browsers spell it, without the default port. */
function hostOf(host: string, protocol = "http:") {
  const url = URL.canParse(`${protocol}//${host}`) ? new URL(`${protocol}//${host}`) : null;
  return url !== null && url.username === "" && url.pathname === "/" && host !== "" ? url : null;
}

function quoted(text: string) {
  return JSON.stringify(text.slice(0, 100));
}
