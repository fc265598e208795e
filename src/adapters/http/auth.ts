import { hash, timingSafeEqual } from "node:crypto";
import { FencepostError } from "../../domain/errors.ts";
import type { ApiKey } from "./options.ts";

/** The name of the key whose secret the header carries; throws UNAUTHENTICATED where there is none. */
export type Authenticate = (authorization: string | undefined) => string;

/** The name of every caller where no API keys are configured. */
export const ANONYMOUS = "anonymous";

const BEARER = /^bearer +([\x21-\x7e]+) *$/i;

/**
 * Digests are compared, not secrets: they have one length, so `timingSafeEqual` takes them, and how long the comparison
 * lasts says nothing about either. Every key is compared each time, for the same reason.
 */
export function authenticator(apiKeys: readonly ApiKey[] | "none"): Authenticate {
  if (apiKeys === "none") return () => ANONYMOUS;
  const keys = apiKeys.map(({ name, secret }) => ({ name, digest: digest(secret) }));
  return (authorization) => {
    const given = BEARER.exec(authorization ?? "")?.[1];
    if (given === undefined) throw unauthenticated("send the secret of an API key as Authorization: Bearer <secret>");
    const offered = digest(given);
    let known: string | null = null;
    for (const key of keys) known = timingSafeEqual(key.digest, offered) ? key.name : known;
    if (known === null) throw unauthenticated("this API key is not known");
    return known;
  };
}

function digest(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

function unauthenticated(detail: string): FencepostError {
  return new FencepostError("UNAUTHENTICATED", detail);
}
