/**
 * Calls the hook for stuck transactions over HTTP. The request body is the context as JSON, the response is the
 * decision. With a secret each request is signed, so that the receiver can verify sender and time:
 * `Fencepost-Signature: t=…,v1=…`, the HMAC-SHA256 of `t.body` in hex. Retries of one request have the same
 * `Idempotency-Key`.
 */
import { createHmac } from "node:crypto";
import type { Entropy } from "../../ports/entropy.ts";
import type { StuckContext, StuckDecision, StuckResolutionHook } from "../../ports/stuck-hook.ts";
import { type PostPorts, parseAnswer, postJson } from "./post-json.ts";

interface HttpStuckHookOptions extends PostPorts {
  readonly entropy: Entropy;
  readonly url: string;
  readonly secret?: string;
}

/** Timeout of one try, short enough that three tries with pauses end before the node stops waiting. */
const TRY_TIMEOUT_MS = 4_000;
const TRIES = 3;

export function createHttpStuckHook(options: HttpStuckHookOptions): StuckResolutionHook {
  return {
    decide: async (context: StuckContext) => {
      const body = JSON.stringify(context);
      const headers = { "idempotency-key": options.entropy.uuid(), ...signature(options, body) };
      const { url } = options;
      const text = await postJson(options, { url, headers, body, timeoutMs: TRY_TIMEOUT_MS, tries: TRIES });
      return parseAnswer(text) as StuckDecision;
    },
  };
}

function signature({ secret, clock }: HttpStuckHookOptions, body: string): Readonly<Record<string, string>> {
  if (secret === undefined) return {};
  const at = Math.floor(clock.now().getTime() / 1_000);
  const digest = createHmac("sha256", secret).update(`${at}.${body}`).digest("hex");
  return { "fencepost-signature": `t=${at},v1=${digest}` };
}
