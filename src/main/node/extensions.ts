import { resolve } from "node:path";
import { systemClock } from "../../adapters/system/clock.ts";
import { createEntropy } from "../../adapters/system/entropy.ts";
import type { TelemetrySink } from "../../adapters/system/telemetry.ts";
import { openTracing, type Tracing } from "../../adapters/telemetry/open-tracing.ts";
import { createAlertSink } from "../../adapters/webhooks/alert-sink.ts";
import { guardedFetch } from "../../adapters/webhooks/guarded-fetch.ts";
import { createHttpStuckHook } from "../../adapters/webhooks/http-stuck-hook.ts";
import type { PostPorts } from "../../adapters/webhooks/post-json.ts";
import { defined } from "../../domain/defined.ts";
import type { RepricingStrategy } from "../../domain/fees/repricing.ts";
import type { Address } from "../../domain/lane.ts";
import type { StuckResolutionHook } from "../../ports/stuck-hook.ts";
import { type Config, ConfigurationError } from "../config/config.ts";
import { firstLine, importModule } from "../config/file.ts";
import { SETTINGS } from "../config/schema.ts";
import { version } from "./version.ts";

/** Extensions of an installation: the stuck hook, a repricing strategy, and the targets of alerts and traces. */
export interface Extensions {
  readonly sinks: readonly TelemetrySink[];
  readonly stuckHook?: StuckResolutionHook;
  readonly repricing?: RepricingStrategy;
  /** Absent: OpenTelemetry's API is not installed. */
  readonly tracing?: Tracing;
  close(): Promise<void>;
}

export interface ExtensionOptions {
  readonly config: Pick<Config, "nodeId" | "stuckHook" | "repricingModule" | "alertWebhook" | "hookNetworks">;
  readonly checksum?: (address: Address) => string;
  readonly onAlertLost?: (reason: string) => void;
}

const ports = { clock: systemClock, entropy: createEntropy(systemClock) };

export async function openExtensions(options: ExtensionOptions): Promise<Extensions> {
  const posting = { ...ports, fetch: guardedFetch(options.config.hookNetworks) };
  const hook = await openHook(options.config.stuckHook, posting);
  const repricing = await openRepricing(options.config.repricingModule);
  const alerts = openAlerts(options, posting);
  const tracing = await openTracing({ clock: systemClock, version });
  return {
    sinks: [alerts?.sink ?? [], tracing?.sink ?? []].flat(),
    ...(tracing === null ? {} : { tracing }),
    ...(hook === null ? {} : { stuckHook: hook }),
    ...(repricing === null ? {} : { repricing }),
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

async function openHook(hook: Config["stuckHook"], posting: Posting): Promise<StuckResolutionHook | null> {
  if (hook === null) return null;
  const { place, secret } = hook;
  if (!/^https?:\/\//i.test(place)) return hookModule(place);
  return createHttpStuckHook({ ...posting, url: place, ...(secret === null ? {} : { secret }) });
}

/** The default export: an object with `propose`, or that function itself. */
async function openRepricing(place: string | null): Promise<RepricingStrategy | null> {
  if (place === null) return null;
  const { variable } = SETTINGS.repricingModule;
  const found = await defaultExport(variable, place);
  if (typeof found === "function") return { name: place, propose: found as RepricingStrategy["propose"] };
  const { name = place, propose } = Object(found) as Partial<RepricingStrategy>;
  if (typeof propose === "function") return { name, propose: propose.bind(found) };
  throw new ConfigurationError([`${variable}: ${place} has no default export with propose(view)`]);
}

async function defaultExport(variable: string, place: string): Promise<unknown> {
  try {
    return await importModule(resolve(process.cwd(), place));
  } catch (error) {
    throw new ConfigurationError([`${variable}: ${place} cannot be loaded: ${firstLine(error)}`]);
  }
}

/** The default export: an object with `decide`, or that function itself. */
async function hookModule(place: string): Promise<StuckResolutionHook> {
  const found = await defaultExport(SETTINGS.stuckHook.variable, place);
  if (typeof found === "function") return { decide: found as StuckResolutionHook["decide"] };
  const hook = found as Partial<StuckResolutionHook> | null | undefined;
  if (typeof hook?.decide === "function") return hook as StuckResolutionHook;
  throw new ConfigurationError([`${SETTINGS.stuckHook.variable}: ${place} has no default export with decide(context)`]);
}
