import { resolve } from "node:path";
import { systemClock } from "../adapters/system/clock.ts";
import { createEntropy } from "../adapters/system/entropy.ts";
import type { TelemetrySink } from "../adapters/system/telemetry.ts";
import { createAlertSink } from "../adapters/webhooks/alert-sink.ts";
import { createHttpStuckHook } from "../adapters/webhooks/http-stuck-hook.ts";
import { defined } from "../domain/defined.ts";
import type { Address } from "../domain/lane.ts";
import type { StuckResolutionHook } from "../ports/stuck-hook.ts";
import { type Config, ConfigurationError } from "./config/config.ts";
import { firstLine, importModule } from "./config/file.ts";
import { SETTINGS } from "./config/schema.ts";

/** What an installation plugs in: the hook that decides about stuck transactions, and where alerts go. */
export interface Extensions {
  readonly sinks: readonly TelemetrySink[];
  readonly stuckHook?: StuckResolutionHook;
  close(): Promise<void>;
}

export interface ExtensionOptions {
  readonly config: Pick<Config, "nodeId" | "stuckHook" | "alertWebhook">;
  readonly checksum?: (address: Address) => string;
  /** An alert could not be delivered. */
  readonly onAlertLost?: (reason: string) => void;
}

const ports = { clock: systemClock, entropy: createEntropy(systemClock) };

export async function openExtensions(options: ExtensionOptions): Promise<Extensions> {
  const hook = await openHook(options.config.stuckHook);
  const alerts = openAlerts(options);
  return {
    sinks: alerts === null ? [] : [alerts.sink],
    ...(hook === null ? {} : { stuckHook: hook }),
    close: async () => alerts?.close(),
  };
}

function openAlerts({ config, checksum, onAlertLost }: ExtensionOptions) {
  if (config.alertWebhook === null) return null;
  const { url, format } = config.alertWebhook;
  const chosen = defined({ format: format ?? undefined, checksum, onLost: onAlertLost });
  return createAlertSink({ ...ports, url, nodeId: config.nodeId, ...chosen });
}

async function openHook(hook: Config["stuckHook"]): Promise<StuckResolutionHook | null> {
  if (hook === null) return null;
  const { place, secret } = hook;
  if (!/^https?:\/\//i.test(place)) return hookModule(place);
  return createHttpStuckHook({ ...ports, url: place, ...(secret === null ? {} : { secret }) });
}

/** The default export: an object with `decide`, or that function itself. */
async function hookModule(place: string): Promise<StuckResolutionHook> {
  const found = await importModule(resolve(process.cwd(), place)).catch((error: unknown) => {
    throw new ConfigurationError([`${SETTINGS.stuckHook.variable}: ${place} cannot be loaded: ${firstLine(error)}`]);
  });
  if (typeof found === "function") return { decide: found as StuckResolutionHook["decide"] };
  const hook = found as Partial<StuckResolutionHook> | null | undefined;
  if (typeof hook?.decide === "function") return hook as StuckResolutionHook;
  throw new ConfigurationError([`${SETTINGS.stuckHook.variable}: ${place} has no default export with decide(context)`]);
}
