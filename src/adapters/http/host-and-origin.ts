/**
 * Which names this node answers to, and which web pages may speak to it. A page that a developer visits can have its own
 * name lead to 127.0.0.1 (DNS rebinding) or post to it across origins: where no key is asked for, only these two headers,
 * which a page cannot choose, tell such a request from the developer's own.
 */
import { isIP } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { FencepostError, invalid } from "../../domain/errors.ts";

export interface WireOptions {
  /** Names without a port stand for every port. "own": this address (a name or an IP) and those of this machine. "any": unchecked. */
  readonly hosts: readonly string[] | { readonly own: readonly string[] } | "any";
  /** Of other sites whose pages may speak to this node, as browsers write them: `https://wallet.example`. */
  readonly origins: readonly string[];
}

/** What a route is, as far as this goes. */
export interface Entry {
  /** Without a key: says nothing that a page should not see. */
  readonly open: boolean;
  /** Asked by probes under any name, or by other nodes with a secret of their own. */
  readonly anyHost: boolean;
}

/** Sends the answer and returns false where the route must not be reached; throws FORBIDDEN where it may not. */
export type Wire = (request: FastifyRequest, reply: FastifyReply, entry: Entry) => boolean;

const WILDCARDS = new Set(["0.0.0.0", "::", "[::]"]);
const PREFLIGHT = {
  "access-control-allow-methods": "GET, POST, PUT, DELETE",
  "access-control-allow-headers": "authorization, content-type, idempotency-key",
  "access-control-max-age": "600",
};
const EXPOSED = "location, retry-after, ratelimit, ratelimit-policy, fencepost-owner, www-authenticate";

export function wire({ hosts, origins }: WireOptions): Wire {
  const isKnown = hosts === "any" ? () => true : hostCheck(hosts);
  const listed = new Set(origins);
  return ({ headers, method }, reply, { open, anyHost }) => {
    const { host = "", origin } = headers;
    if (!anyHost && !isKnown(host)) {
      throw forbidden("host", `this node does not answer to the name ${quoted(host)}: see FENCEPOST_ALLOWED_HOSTS`);
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
    throw forbidden("origin", `pages of ${quoted(origin)} may not use this node: see FENCEPOST_ALLOWED_ORIGINS`);
  };
}

/**
 * Two Host headers mean two recipients: a proxy may judge a request by one of them, and Node answers by the other. Throws
 * INVALID_REQUEST (RFC 9112, 3.2), also where both say the same.
 */
export function refuseTwoHosts(rawHeaders: readonly string[]): void {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host" && ++hosts > 1) throw invalid("host", "is given twice");
  }
}

/** The page came from the host that it now asks. The scheme is left out: a proxy in front may end TLS. */
function isSame(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: own } = new URL(origin);
  return own !== "" && own === hostOf(host, protocol)?.host;
}

function hostCheck(hosts: Exclude<WireOptions["hosts"], "any">): (host: string) => boolean {
  const names = "own" in hosts ? ["localhost", "127.0.0.1", "[::1]", ...hosts.own] : hosts;
  const known = new Set(names.map((name) => hostOf(name)?.host));
  // No name leads to a page under a bare address but the address itself: behind a wildcard, each of this machine's may be asked.
  const anyAddress = "own" in hosts && hosts.own.some((name) => WILDCARDS.has(name));
  const isKnown = (said: string): boolean => {
    const url = hostOf(said);
    if (url === null) return false;
    if (known.has(url.hostname) || known.has(url.host)) return true;
    if ("own" in hosts && url.hostname.endsWith(".localhost")) return true;
    return anyAddress && isIP(url.hostname.replace(/^\[|\]$/g, "")) !== 0;
  };
  // Callers come under one name, request after request: it is taken apart once.
  let last = "";
  return (said) => {
    if (said !== "" && said === last) return true;
    if (!isKnown(said)) return false;
    last = said;
    return true;
  };
}

/** As browsers spell it, without the port that goes without saying. */
function hostOf(said: string, protocol = "http:"): URL | null {
  const url = URL.canParse(`${protocol}//${said}`) ? new URL(`${protocol}//${said}`) : null;
  return url !== null && url.username === "" && url.pathname === "/" && said !== "" ? url : null;
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}

function forbidden(rule: string, detail: string): FencepostError {
  return new FencepostError("FORBIDDEN", detail, { rule });
}
