/** `fencepost doctor`: finds mistakes in this configuration, and in the services that it names. */
import type { Finding } from "../../adapters/cli/diagnose.ts";
import { createCodec } from "../../adapters/evm/codec/codec.ts";
import type { Address } from "../../domain/lane.ts";
import { createMask } from "../../domain/text/mask.ts";
import { type Config, ConfigurationError } from "../config/config.ts";
import { loadPolicies } from "../node/load-policies.ts";
import { gather } from "./gather.ts";
import { judge } from "./judge.ts";

/** `load`: loads the configuration either as `start` would, or as `config` would, which requires fewer settings. */
export async function doctor(load: (command: "start" | "config") => Promise<Config>): Promise<readonly Finding[]> {
  const mistakes: string[] = [];
  // Ignore mistakes of the second load of the configuration: the first load reports them too.
  const config = (await load("start").catch(addTo(mistakes))) ?? (await load("config").catch(addTo([])));
  if (config !== null) await loadPolicies(config).catch(addTo(mistakes));
  const mask = createMask(config?.secrets ?? []);
  const findings = judge({ nodeVersion: process.versions.node, mistakes, ...(config && (await gather(config))) });
  return findings.map((finding) => ({ ...finding, text: withChecksums(mask(finding.text)) }));
}

/** Addresses are lower-case inside a node; people compare them with wallets and explorers, which show EIP-55. */
function withChecksums(text: string) {
  const { checksum } = createCodec();
  return text.replace(/\b0x[0-9a-f]{40}\b/g, (address) => checksum(address as Address));
}

function addTo(mistakes: string[]) {
  return (error: unknown) => {
    if (!(error instanceof ConfigurationError)) throw error;
    mistakes.push(...error.mistakes);
    return null;
  };
}
