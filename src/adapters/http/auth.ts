import { hash, timingSafeEqual } from "node:crypto";
import { PEER_SCHEME } from "../../contract/peer-wire.ts";
import { FencepostError, unavailable } from "../../domain/errors.ts";
import { ANYBODY, type Principal, USUAL_SCOPES } from "../../domain/principal.ts";
import type { ApiKey } from "./options.ts";

/** Whose secret the header carries; throws UNAUTHENTICATED where it is nobody's. */
export type Authenticate = (authorization: string | undefined) => Principal;

const BEARER = /^bearer +([\x21-\x7e]+) *$/i;

/**
 * Keys are looked up by the SHA-256 digest of their secret. How long that takes may tell how much of a digest was alike,
 * which is of no use: nobody can choose a secret by the beginning of its digest.
 */
export function authenticator(apiKeys: readonly ApiKey[] | "none"): Authenticate {
  if (apiKeys === "none") return () => ANYBODY;
  const principals = new Map(apiKeys.map((key) => [hash("sha256", key.secret, "base64"), principalOf(key)]));
  return (authorization) => {
    const given = BEARER.exec(authorization ?? "")?.[1];
    if (given === undefined) throw unauthenticated("send the secret of an API key as Authorization: Bearer <secret>");
    const principal = principals.get(hash("sha256", given, "base64"));
    if (principal === undefined) throw unauthenticated("this API key is not known");
    return principal;
  };
}

function principalOf({ name, scopes = USUAL_SCOPES, signers, chains }: ApiKey): Principal {
  const limit = <T>(to: readonly T[] | undefined) => (to === undefined ? null : new Set(to));
  return { name, scopes: new Set(scopes), signers: limit(signers), chains: limit(chains) };
}

/** The same between nodes, with the one secret that they share. UNAVAILABLE while that cannot be read. */
export function peerAuthenticator(
  secret: string | (() => Promise<string>),
): (authorization: string | undefined) => Promise<void> {
  let expected: Buffer | null = null;
  return async (authorization) => {
    expected ??= digest(`${PEER_SCHEME} ${await known(secret)}`);
    const offered = digest(authorization ?? "");
    if (!timingSafeEqual(expected, offered)) throw unauthenticated("this is for other nodes of the same database");
  };
}

async function known(secret: string | (() => Promise<string>)): Promise<string> {
  if (typeof secret === "string") return secret;
  try {
    return await secret();
  } catch (error) {
    if (error instanceof FencepostError) throw error;
    throw unavailable("this node does not know the others yet", error);
  }
}

function digest(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

function unauthenticated(detail: string): FencepostError {
  return new FencepostError("UNAUTHENTICATED", detail);
}
