import { readFile } from "node:fs/promises";
import { createCodec } from "../adapters/evm/codec.ts";
import { parsePolicies } from "../domain/policy/parse.ts";
import type { Policies } from "../domain/policy/policy.ts";
import { type Config, ConfigurationError } from "./config/config.ts";

/** Of the file, or of the configuration; null: nothing is limited. Throws with a line for each mistake. */
export async function loadPolicies({
  policies: { file, document },
}: Pick<Config, "policies">): Promise<Policies | null> {
  const [name, said] = file === null ? ["policies", document] : [file, await readDocument(file)];
  if (said === null) return null;
  const parsed = parsePolicies(said, createCodec());
  if ("policies" in parsed) return parsed.policies;
  throw new ConfigurationError(parsed.mistakes.map((mistake) => `${name}: ${mistake}`));
}

/** A file that is named and cannot be read is no reason to run without limits. */
async function readDocument(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new ConfigurationError([`FENCEPOST_POLICY_FILE: ${file} cannot be read: ${(error as Error).message}`]);
  }
}
