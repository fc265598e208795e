import { readFile } from "node:fs/promises";
import { createCodec } from "../../adapters/evm/codec/codec.ts";
import { parsePolicies } from "../../domain/policy/parse.ts";
import type { Policies } from "../../domain/policy/policy.ts";
import { type Config, ConfigurationError } from "../config/config.ts";

/**
 * Policies from the policy file or the configuration; null: nothing is limited. Throws with a line for each mistake.
 */
export async function loadPolicies({
  policies: { file, document },
}: Pick<Config, "policies">): Promise<Policies | null> {
  const [name, written] = file === null ? ["policies", document] : [file, await readDocument(file)];
  if (written === null) return null;
  const parsed = parsePolicies(written, createCodec());
  if ("policies" in parsed) return parsed.policies;
  throw new ConfigurationError(parsed.mistakes.map((mistake) => `${name}: ${mistake}`));
}

/** Reads the policy file. Throws if it cannot be read: a node must not run without its limits. */
async function readDocument(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new ConfigurationError([`FENCEPOST_POLICY_FILE: ${file} cannot be read: ${(error as Error).message}`]);
  }
}
