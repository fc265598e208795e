/**
 * Reports an API key's quotas before they are exceeded, in the headers `RateLimit-Policy` (the limit) and `RateLimit`
 * (what is left, and when it renews) of draft-ietf-httpapi-ratelimit-headers-10. In these headers, each quota has the
 * same name as the rule in the error of a refused request.
 */
import type { FastifyReply, FastifyRequest, onSendHookHandler } from "fastify";
import { type KeyRates, RATE_RULE } from "../../../application/key-rates.ts";
import type { FencepostError } from "../../../domain/errors.ts";

/**
 * Adds the rate-limit headers to responses of routes that count against the API key's rate of creates, if the key has
 * one.
 */
export function rateHeaders(rates: Pick<KeyRates, "left">): onSendHookHandler {
  return ({ principal }: FastifyRequest, reply, payload, done) => {
    const left = principal === null ? null : rates.left(principal);
    if (left !== null)
      addHeaders(reply, `"${RATE_RULE}";q=${principal.createsPerSecond};w=1`, `"${RATE_RULE}";r=${left};t=1`);
    done(null, payload);
  };
}

/**
 * Adds the rate-limit headers to the refusal of a request that exceeded a quota. Does nothing for the key's rate of
 * creates: `rateHeaders` adds the headers for that.
 */
export function quotaHeaders(reply: FastifyReply, { extras }: FencepostError): void {
  const { rule, limit, retryAfterSeconds = 1 } = extras;
  if (rule === undefined || limit === undefined || rule === RATE_RULE) return;
  addHeaders(reply, `"${rule}";q=${limit}`, `"${rule}";r=0;t=${Math.ceil(retryAfterSeconds)}`);
}

function addHeaders(reply: FastifyReply, policy: string, left: string) {
  for (const [name, item] of [["ratelimit-policy", policy] as const, ["ratelimit", left] as const]) {
    const others = reply.getHeader(name);
    reply.header(name, others === undefined ? item : `${others}, ${item}`);
  }
}
