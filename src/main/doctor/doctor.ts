/** `fencepost doctor`: what is wrong with this configuration, and with what it leads to. */
import type { Finding } from "../../adapters/cli/diagnose.ts";
import { createMask } from "../../domain/text/mask.ts";
import { type Config, ConfigurationError } from "../config/config.ts";
import { loadPolicies } from "../node/load-policies.ts";
import { gather } from "./gather.ts";
import { judge } from "./judge.ts";

/** `load` as `start` would, and as `config` would, which demands less. */
export async function doctor(load: (command: "start" | "config") => Promise<Config>): Promise<readonly Finding[]> {
  const whole = await attempt(() => load("start"));
  const part = whole.mistakes.length === 0 ? whole : await attempt(() => load("config"));
  const config = part.value;
  const policies = config === null ? [] : (await attempt(() => loadPolicies(config))).mistakes;
  const mask = createMask(config?.secrets ?? []);
  const findings = judge(await gather(config, [...whole.mistakes, ...policies]));
  return findings.map((finding) => ({ ...finding, text: mask(finding.text) }));
}

async function attempt<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T | null; readonly mistakes: readonly string[] }> {
  try {
    return { value: await work(), mistakes: [] };
  } catch (error) {
    if (error instanceof ConfigurationError) return { value: null, mistakes: error.mistakes };
    throw error;
  }
}
