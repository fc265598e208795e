import { hash } from "node:crypto";
import type { RouteOptions } from "fastify";
import type { CallScope } from "../../contract/calls/call.ts";
import { ROUTE_SCOPES } from "../../contract/scopes.ts";
import { FencepostError } from "../../domain/errors.ts";
import { ANYBODY, forbidden, NO_QUOTAS, type Principal, USUAL_SCOPES } from "../../domain/principal.ts";
import type { ApiKey, HttpServerOptions } from "./options.ts";

/** Whose secret the header carries; throws UNAUTHENTICATED where it is nobody's. */
export type Authenticate = (authorization: string | undefined) => Principal;

const BEARER = /^bearer +([\x21-\x7e]+) *$/i;

/**
 * Keys are looked up by the SHA-256 digest of their secret. How long that takes may tell how much of a digest was alike,
 * which is of no use: nobody can choose a secret by the beginning of its digest.
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

/** Throws FORBIDDEN where the key has neither the route's scope nor one that is as good, or enough for what is its own. */
export function authorise({ scopes }: Principal, { scope, or, own }: CallScope): void {
  if ([scope, or, own].some((enough) => enough !== undefined && scopes.has(enough))) return;
  throw forbidden(
    `scope:${scope}`,
    `this API key does not have the scope ${or === undefined ? scope : `${scope} or ${or}`}`,
  );
}

/** Such a route asks for what the same route without it asks for. */
export const KEY_AT_END = "/key/:secret";

/** A key that travels in a path may be written down anywhere on its way: it can look and send, and nothing else. */
export const inPath = rememberedFor((principal: Principal): Principal => {
  return { ...principal, scopes: new Set(USUAL_SCOPES.filter((scope) => principal.scopes.has(scope))) };
});

/** What a route asks for. One without a scope of its own is a mistake of ours, found before the node listens. */
export function scopeOf({ method, url }: Pick<RouteOptions, "method" | "url">): CallScope {
  const [verb = ""] = [method].flat();
  const path = url.replace(KEY_AT_END, "").replace(/:(\w+)/g, "{$1}");
  const at = `${verb === "HEAD" ? "get" : verb.toLowerCase()} ${path}`;
  const scope = ROUTE_SCOPES[at];
  if (scope === undefined) throw new Error(`the route ${at} has no scope in src/contract/scopes.ts`);
  return scope;
}

/** Made once for each key. */
export function rememberedFor<T>(make: (principal: Principal) => T): (principal: Principal) => T {
  const made = new WeakMap<Principal, T>();
  return (principal) => {
    const known = made.get(principal);
    if (known !== undefined) return known;
    const first = make(principal);
    made.set(principal, first);
    return first;
  };
}

function unauthenticated(detail: string): FencepostError {
  return new FencepostError("UNAUTHENTICATED", detail);
}
