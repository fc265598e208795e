import { createCodec } from "../../adapters/evm/codec/codec.ts";
import { parsePolicies } from "../../domain/policy/parse.ts";
import type { Policies } from "../../domain/policy/policy.ts";
import { type Config, ConfigurationError } from "../config/config.ts";
import { readDocument } from "./read-document.ts";

/**
 * Policies from the policy file or the configuration; null: nothing is limited. Throws with a line for each mistake,
 * and if the file cannot be read: a node must not run without its limits.
 */
export async function loadPolicies({
  policies: { file, document },
}: Pick<Config, "policies">): Promise<Policies | null> {
  const [name, written] =
    file === null ? ["policies", document] : [file, await readDocument("FENCEPOST_POLICY_FILE", file)];
  if (written === null) return null;
  const parsed = parsePolicies(written, createCodec());
  if ("policies" in parsed) return parsed.policies;
  throw new ConfigurationError(parsed.mistakes.map((mistake) => `${name}: ${mistake}`));
}
