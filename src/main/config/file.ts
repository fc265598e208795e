import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, extname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "../../domain/text/thrown.ts";
import { ConfigurationError } from "./config.ts";
import type { ConfigFile } from "./sources.ts";

export const CONFIG_FILES = ["fencepost.config.ts", "fencepost.config.js", "fencepost.config.json"] as const;

/** Reads the named configuration file, otherwise the one in the directory; null if there is none. */
export async function readConfigFile(
  directory: string,
  named: string | undefined,
): Promise<Required<ConfigFile> | null> {
  const path = named === undefined ? findIn(directory) : resolve(directory, named);
  if (path === null) return null;
  const name = named ?? basename(path);
  if (!existsSync(path)) throw new ConfigurationError([`${name}: there is no such file`]);
  try {
    return { name, path, content: extname(path) === ".json" ? await readJson(path) : await importModule(path) };
  } catch (error) {
    throw new ConfigurationError([`${name}: cannot be read: ${firstLine(error)}`]);
  }
}

/**
 * Throws if the configuration file contains keys and other users of the machine can read it. Returns warnings if this
 * process could not check that. A file that only refers to keys elsewhere (the environment, a secret's file) is not
 * refused.
 */
export async function refuseOpenKeys(path: string, keys: readonly string[]): Promise<readonly string[]> {
  const text = (await readFile(path, "utf8")).toLowerCase();
  if (!keys.some((key) => text.includes(key.toLowerCase()))) return [];
  const { readSecretFile } = await import("../../adapters/evm/signers/private-keys.ts");
  const warnings: string[] = [];
  await readSecretFile(path, "configuration file with keys", (line) => warnings.push(line)).catch((error: unknown) => {
    throw new ConfigurationError([firstLine(error)]);
  });
  return warnings;
}

function findIn(directory: string) {
  const found = CONFIG_FILES.filter((name) => existsSync(resolve(directory, name)));
  const [first, second] = found;
  if (second !== undefined) {
    throw new ConfigurationError([`${first}: there is ${second} beside it; keep one, or name one with --config`]);
  }
  return first === undefined ? null : resolve(directory, first);
}

/**
 * Reads JSON. JSON.parse quotes the text around an error, which may be a key, so the message here has only line and
 * column.
 */
async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8");
  try {
    return JSON.parse(text);
  } catch (error) {
    const position = /position (\d+)/.exec(String(error))?.[1];
    if (position === undefined) throw new Error("the file is not JSON");
    const before = text.slice(0, Number(position)).split("\n");
    throw new Error(`the file is not JSON (line ${before.length}, column ${(before.at(-1) ?? "").length + 1})`);
  }
}

/**
 * Loads a module with jiti, because Node loads TypeScript only since 22.18. `fencepost/config` is aliased to the
 * running copy of Fencepost, so a file outside any project (a global install, a container) can import it too.
 */
export async function importModule(path: string): Promise<unknown> {
  const { createJiti } = await import("jiti");
  const define = fileURLToPath(new URL(`./define${extname(import.meta.url)}`, import.meta.url));
  const jiti = createJiti(import.meta.url, {
    fsCache: false,
    moduleCache: false,
    alias: { "fencepost/config": define },
  });
  return jiti.import(path, { default: true });
}

export function firstLine(error: unknown): string {
  const message = messageOf(error);
  return message.split("\n", 1)[0] ?? "";
}
