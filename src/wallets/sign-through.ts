import { Patience } from "./patience.ts";
import { FencepostSendError, unsupported } from "./send-error.ts";
import { untilDecided } from "./send-through.ts";
import type { FencepostSource, Hex, MessageIntent } from "./source.ts";

/**
 * Has a message signed once: every repeat has the same request id, so that the limits of its rule count it once. Throws
 * if it waits for approval.
 */
export async function signThrough(source: FencepostSource, intent: MessageIntent, timeoutMs: number): Promise<Hex> {
  if (source.sign === undefined) throw unsupported("this client has no method `sign`, so it signs no messages");
  const sign = source.sign.bind(source);
  const { signature, signatureId } = await untilDecided(new Patience(timeoutMs), intent, () => sign(intent));
  if (signature !== null) return signature as Hex;
  const { requestId } = intent;
  const message = `signature ${signatureId} waits for approval: sign it again with the request id ${requestId} once it is approved`;
  throw new FencepostSendError(message, { requestId, failure: "TIMEOUT" });
}
