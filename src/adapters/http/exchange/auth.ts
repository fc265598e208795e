import { hash } from "node:crypto";
import type { RouteOptions } from "fastify";
import type { CallScope } from "../../../contract/calls/call.ts";
import { ROUTE_SCOPES } from "../../../contract/scopes.ts";
import { FencepostError } from "../../../domain/errors.ts";
import { ANYBODY, forbidden, NO_QUOTAS, type Principal, USUAL_SCOPES } from "../../../domain/keys/principal.ts";
import type { ApiKey, HttpServerOptions } from "./options.ts";

/** Returns the API key's identity for an Authorization header. Throws UNAUTHENTICATED if the secret is unknown. */
export type Authenticate = (authorization: string | undefined) => Principal;

const BEARER = /^bearer +([\x21-\x7e]+) *$/i;

/**
 * Looks API keys up by the SHA-256 digest of their secret. The timing may reveal a common prefix of digests, which is
 * useless: a secret cannot be chosen by its digest.
 */
export function authenticator(
  apiKeys: readonly ApiKey[] | "none",
  liveKeys?: HttpServerOptions["liveKeys"],
): Authenticate {
  if (apiKeys === "none") return () => ANYBODY;
  const principals = new Map(apiKeys.map((key) => [hash("sha256", key.secret, "hex"), principalOf(key)]));
  return (authorization) => {
    const given = BEARER.exec(authorization ?? "")?.[1];
    if (given === undefined) throw unauthenticated("send the secret of an API key as Authorization: Bearer <secret>");
    const offered = hash("sha256", given, "hex");
    const principal = principals.get(offered) ?? liveKeys?.find(offered) ?? null;
    if (principal === null) throw unauthenticated("this API key is not known");
    return principal;
  };
}

function principalOf({ name, secret: _, scopes = USUAL_SCOPES, signers, chains, ...quotas }: ApiKey): Principal {
  const limit = <T>(to: readonly T[] | undefined) => (to === undefined ? null : new Set(to));
  return { name, scopes: new Set(scopes), signers: limit(signers), chains: limit(chains), ...NO_QUOTAS, ...quotas };
}

/**
 * Throws FORBIDDEN unless the key has the route's scope, an equivalent scope, or one that suffices for the key's own
 * resources.
 */
export function authorise({ scopes }: Principal, { scope, or, own }: CallScope): void {
  if ([scope, or, own].some((enough) => enough !== undefined && scopes.has(enough))) return;
  throw forbidden(
    `scope:${scope}`,
    `this API key does not have the scope ${or === undefined ? scope : `${scope} or ${or}`}`,
  );
}

/** Suffix of routes that take the API key in the path. They require the same scope as the route without the suffix. */
export const KEY_AT_END = "/key/:secret";

/** Restricts an API key that was sent in a path to reading and sending, because paths may be logged anywhere. */
export const inPath = rememberedFor((principal: Principal): Principal => {
  return { ...principal, scopes: new Set(USUAL_SCOPES.filter((scope) => principal.scopes.has(scope))) };
});

/**
 * Returns the scope that a route requires. A route without a scope is a programming error, found before the node
 * listens.
 */
export function scopeOf({ method, url }: Pick<RouteOptions, "method" | "url">): CallScope {
  const [verb = ""] = [method].flat();
  const path = url.replace(KEY_AT_END, "").replace(/:(\w+)/g, "{$1}");
  const at = `${verb === "HEAD" ? "get" : verb.toLowerCase()} ${path}`;
  const scope = ROUTE_SCOPES[at];
  if (scope === undefined) throw new Error(`the route ${at} has no scope in src/contract/scopes.ts`);
  return scope;
}

/** Caches one value per object, such as an API key. */
export function rememberedFor<K extends object, T>(make: (key: K) => T): (key: K) => T {
  const made = new WeakMap<K, T>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const first = make(key);
    made.set(key, first);
    return first;
  };
}

function unauthenticated(detail: string) {
  return new FencepostError("UNAUTHENTICATED", detail);
}
