import { readFile } from "node:fs/promises";
import { ConfigurationError } from "../config/config.ts";

/** Reads a JSON file that a setting names. `variable`: the setting's variable, for the error. */
export async function readDocument(variable: string, file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new ConfigurationError([`${variable}: ${file} cannot be read: ${(error as Error).message}`]);
  }
}
