import { hash, timingSafeEqual } from "node:crypto";
import { FencepostError } from "../../domain/errors.ts";
import type { ApiKey } from "./options.ts";

/** Throws UNAUTHENTICATED unless the header carries the secret of a key. */
export type Authenticate = (authorization: string | undefined) => void;

const BEARER = /^bearer +([\x21-\x7e]+) *$/i;

/**
 * Digests are compared, not secrets: they have one length, so `timingSafeEqual` takes them, and how long the comparison
 * lasts says nothing about either. Every key is compared each time, for the same reason.
 */
export function authenticator(apiKeys: readonly ApiKey[] | "none"): Authenticate {
  if (apiKeys === "none") return () => undefined;
  const digests = apiKeys.map((key) => digest(key.secret));
  return (authorization) => {
    const given = BEARER.exec(authorization ?? "")?.[1];
    if (given === undefined) throw unauthenticated("send the secret of an API key as Authorization: Bearer <secret>");
    const offered = digest(given);
    let known = false;
    for (const expected of digests) known = timingSafeEqual(expected, offered) || known;
    if (!known) throw unauthenticated("this API key is not known");
  };
}

function digest(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

function unauthenticated(detail: string): FencepostError {
  return new FencepostError("UNAUTHENTICATED", detail);
}
