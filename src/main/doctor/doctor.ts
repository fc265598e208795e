/** `fencepost doctor`: mistakes in this configuration, and in the services that it names. */
import type { Finding } from "../../adapters/cli/diagnose.ts";
import { createMask } from "../../domain/text/mask.ts";
import { type Config, ConfigurationError } from "../config/config.ts";
import { loadPolicies } from "../node/load-policies.ts";
import { gather } from "./gather.ts";
import { judge } from "./judge.ts";

/** `load` as `start` would, and as `config` would, which demands less. */
export async function doctor(load: (command: "start" | "config") => Promise<Config>): Promise<readonly Finding[]> {
  const mistakes: string[] = [];
  // Mistakes of the second load are among those of the first.
  const config = (await load("start").catch(addTo(mistakes))) ?? (await load("config").catch(addTo([])));
  if (config !== null) await loadPolicies(config).catch(addTo(mistakes));
  const mask = createMask(config?.secrets ?? []);
  const findings = judge({ nodeVersion: process.versions.node, mistakes, ...(config && (await gather(config))) });
  return findings.map((finding) => ({ ...finding, text: mask(finding.text) }));
}

function addTo(mistakes: string[]) {
  return (error: unknown) => {
    if (!(error instanceof ConfigurationError)) throw error;
    mistakes.push(...error.mistakes);
    return null;
  };
}
