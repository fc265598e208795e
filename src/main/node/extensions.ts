import { resolve } from "node:path";
import { systemClock } from "../../adapters/system/clock.ts";
import { createEntropy } from "../../adapters/system/entropy.ts";
import { openTracing } from "../../adapters/telemetry/open-tracing.ts";
import { createAlertSink } from "../../adapters/webhooks/alert-sink.ts";
import { guardedFetch } from "../../adapters/webhooks/guarded-fetch.ts";
import { createHttpStuckHook } from "../../adapters/webhooks/http-stuck-hook.ts";
import type { PostPorts } from "../../adapters/webhooks/post-json.ts";
import { defined } from "../../domain/defined.ts";
import type { RepricingStrategy } from "../../domain/fees/repricing.ts";
import type { Checksum } from "../../domain/text/checksum.ts";
import type { StuckResolutionHook } from "../../ports/stuck-hook.ts";
import { type Config, ConfigurationError } from "../config/config.ts";
import { firstLine, importModule } from "../config/file.ts";
import { SETTINGS } from "../config/schema.ts";
import { userAgent, version } from "./version.ts";

/**
 * Extensions that the user of this node configured: the stuck hook, a repricing strategy, and the targets of alerts and
 * traces.
 */
export type Extensions = Awaited<ReturnType<typeof openExtensions>>;

export interface ExtensionOptions {
  readonly config: Pick<Config, "nodeId" | "stuckHook" | "repricingModule" | "alertWebhook" | "hookNetworks">;
  readonly checksum?: Checksum;
  readonly onAlertLost?: (reason: string) => void;
}

const ports = { clock: systemClock, entropy: createEntropy(systemClock) };

export async function openExtensions(options: ExtensionOptions) {
  const posting = { ...ports, fetch: guardedFetch(options.config.hookNetworks, userAgent) };
  const stuckHook = await openHook(options.config.stuckHook, posting);
  const repricing = await openRepricing(options.config.repricingModule);
  const alerts = openAlerts(options, posting);
  const tracing = await openTracing({ clock: systemClock, version });
  return {
    sinks: [alerts?.sink ?? [], tracing?.sink ?? []].flat(),
    /** Tracing is absent if OpenTelemetry's API is not installed. */
    ...(tracing && { tracing }),
    ...(stuckHook && { stuckHook }),
    ...(repricing && { repricing }),
    close: async () => alerts?.close(),
  };
}

type Posting = typeof ports & Pick<PostPorts, "fetch">;

function openAlerts({ config, checksum, onAlertLost }: ExtensionOptions, posting: Posting) {
  if (config.alertWebhook === null) return null;
  const { url, format } = config.alertWebhook;
  const chosen = defined({ format: format ?? undefined, checksum, onLost: onAlertLost });
  return createAlertSink({ ...posting, url, nodeId: config.nodeId, ...chosen });
}

async function openHook(hook: Config["stuckHook"], posting: Posting) {
  if (hook === null) return null;
  const { place, secret } = hook;
  if (!/^https?:\/\//i.test(place)) return moduleAt<StuckResolutionHook>("stuckHook", place, ["decide", "context"]);
  return createHttpStuckHook({ ...posting, url: place, ...(secret === null ? {} : { secret }) });
}

async function openRepricing(place: string | null): Promise<RepricingStrategy | null> {
  if (place === null) return null;
  const own = await moduleAt<RepricingStrategy>("repricingModule", place, ["propose", "view"]);
  return { name: own.name ?? place, propose: (view) => own.propose(view) };
}

/** Loads the default export of a module: an object with the method, or the function itself. */
async function moduleAt<T>(
  setting: "stuckHook" | "repricingModule",
  place: string,
  [method, argument]: readonly [keyof T & string, string],
) {
  const { variable } = SETTINGS[setting];
  const found = await importModule(resolve(process.cwd(), place)).catch((error: unknown) => {
    throw new ConfigurationError([`${variable}: ${place} cannot be loaded: ${firstLine(error)}`]);
  });
  if (typeof found === "function") return { [method]: found } as T;
  if (typeof Object(found)[method] === "function") return found as T;
  throw new ConfigurationError([`${variable}: ${place} has no default export with ${method}(${argument})`]);
}
