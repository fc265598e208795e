import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { BadKey } from "./errors.ts";
import { decryptKeystore } from "./keystore.ts";
import type { SigningKey } from "./private-keys.ts";

export interface KeystoreSource {
  readonly directory: string;
  /** One password for all files; a line break at its end does not belong to it. */
  readonly passwordFile: string;
}

/** geth names its files UTC--<time>--<address>, without an extension. Anything else (a README, the password) is no key. */
const KEY_FILE = /^(UTC--.+|.+\.json)$/i;

/**
 * Every key of the directory, or an error that names the first file that is wrong: a node must not start with half of
 * its signers. One after the other, because each scrypt takes 256 MiB.
 */
export async function loadKeystoreDirectory(source: KeystoreSource): Promise<readonly SigningKey[]> {
  const password = (await readText(source.passwordFile, "keystore password file")).replace(/\r?\n$/, "");
  const keys: SigningKey[] = [];
  for (const file of await keyFiles(source.directory)) {
    keys.push(await decryptKeystore(await readText(file, "keystore file"), password, file));
  }
  if (keys.length === 0) throw new BadKey(`${source.directory}: holds no keystore file (UTC--… or *.json)`);
  return keys;
}

async function keyFiles(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory).catch((cause: unknown) => {
    throw new BadKey(`${directory}: the keystore directory cannot be read (${codeOf(cause)})`, { cause });
  });
  const files: string[] = [];
  for (const name of names.filter((each) => KEY_FILE.test(each) && !each.startsWith(".")).sort()) {
    const path = join(directory, name);
    // stat, not the directory entry: mounted secrets are symbolic links.
    if ((await stat(path)).isFile()) files.push(path);
  }
  return files;
}

async function readText(path: string, what: string): Promise<string> {
  return readFile(path, "utf8").catch((cause: unknown) => {
    throw new BadKey(`${path}: the ${what} cannot be read (${codeOf(cause)})`, { cause });
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
