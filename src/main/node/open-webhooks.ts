import { createCodec } from "../../adapters/evm/codec/codec.ts";
import { present } from "../../adapters/http/exchange/present-answer.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { guardedAgent } from "../../adapters/webhooks/guarded-fetch.ts";
import { createSignedWebhooks } from "../../adapters/webhooks/signed-webhooks.ts";
import { Completion } from "../../contract/schemas/completions.ts";
import { rememberingChecksum } from "../../domain/text/checksum.ts";
import type { WebhookSender } from "../../ports/webhook-sender.ts";
import type { Config } from "../config/config.ts";
import { userAgent } from "./version.ts";

/** Opens the sender of webhooks. The body of a delivery is the item as the feed shows it. */
export function openWebhooks({
  hookNetworks,
  clusterSecrets,
}: Pick<Config, "hookNetworks" | "clusterSecrets">): WebhookSender {
  const checksum = rememberingChecksum(createCodec().checksum);
  return createSignedWebhooks({
    clock: systemClock,
    dispatcher: guardedAgent(hookNetworks),
    userAgent,
    secrets: clusterSecrets,
    present: (completion) => present(Completion, completion, { checksum, now: systemClock.now() }),
  });
}
