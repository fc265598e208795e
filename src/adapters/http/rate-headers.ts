/**
 * What an API key has left of its quotas, as clients can read it ahead of a refusal: `RateLimit-Policy` (what it is allowed)
 * and `RateLimit` (what is left, and when there is more), lists of structured fields as in
 * draft-ietf-httpapi-ratelimit-headers-10. Each policy is called as the rule that a refusal names.
 */
import type { FastifyReply, FastifyRequest, onSendHookHandler } from "fastify";
import { type KeyRates, RATE_RULE } from "../../application/key-rates.ts";
import type { FencepostError } from "../../domain/errors.ts";

/** Before the answer of a route that is counted: says what is left of the key's rate. Nothing, where it has none. */
export function rateHeaders(rates: Pick<KeyRates, "left">): onSendHookHandler {
  return ({ principal }: FastifyRequest, reply, payload, done) => {
    const left = principal === null ? null : rates.left(principal);
    if (left !== null)
      tell(reply, `"${RATE_RULE}";q=${principal.createsPerSecond};w=1`, `"${RATE_RULE}";r=${left};t=1`);
    done(null, payload);
  };
}

/** Of the refusal itself: nothing is left of what its rule allows. The rate of a key is told with every answer. */
export function tellQuota(reply: FastifyReply, { extras }: FencepostError): void {
  const { rule, limit, retryAfterSeconds = 1 } = extras;
  if (rule === undefined || limit === undefined || rule === RATE_RULE) return;
  tell(reply, `"${rule}";q=${limit}`, `"${rule}";r=0;t=${Math.ceil(retryAfterSeconds)}`);
}

function tell(reply: FastifyReply, policy: string, left: string): void {
  for (const [name, item] of [["ratelimit-policy", policy] as const, ["ratelimit", left] as const]) {
    const others = reply.getHeader(name);
    reply.header(name, others === undefined ? item : `${others}, ${item}`);
  }
}
