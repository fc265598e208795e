/** Creates, imports and lists key files for `fencepost keys`. Private keys are never shown. */
import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Address } from "../../../domain/lane.ts";
import { encryptKeystore, type KeystoreSource, keyFiles, parseKeystore, readPassword } from "./keystore.ts";
import { BadKey, parsePrivateKeys, type SigningKey, toSigningKey } from "./private-keys.ts";

export interface StoredKey {
  /** Null if the file has no address. */
  readonly address: Address | null;
  readonly file: string;
}

export async function newKey(source: KeystoreSource, now: Date): Promise<StoredKey> {
  // 32 random bytes are an invalid key with a probability of 2^-128; that is an error.
  return store(source, toSigningKey(randomBytes(32), "the new key"), now);
}

/** `hex`: the private key as text. */
export async function importKey(source: KeystoreSource, hex: string, now: Date): Promise<StoredKey> {
  const [key] = parsePrivateKeys([hex]) as [SigningKey];
  return store(source, key, now);
}

/** Reads the addresses in the files. Nothing is decrypted. */
export async function listKeyFiles({ directory }: Pick<KeystoreSource, "directory">): Promise<readonly StoredKey[]> {
  const stored: StoredKey[] = [];
  for (const file of await keyFiles(directory)) {
    stored.push({ address: parseKeystore(await readFile(file, "utf8"), file).address, file });
  }
  return stored;
}

async function store(source: KeystoreSource, key: SigningKey, now: Date): Promise<StoredKey> {
  const { directory, passwordFile } = source;
  const password = await readPassword(passwordFile);
  if (password === "") throw new BadKey(`${passwordFile}: is empty: a key is not stored under an empty password`);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const known = (await listKeyFiles(source)).find(({ address }) => address === key.address);
  if (known !== undefined) throw new BadKey(`${known.file}: holds the key of ${key.address} already`);
  // File name in geth's format.
  const name = `UTC--${now.toISOString().replaceAll(":", "-")}--${key.address.slice(2)}`;
  const file = join(directory, name);
  await writeWhole(directory, name, await encryptKeystore(key, password));
  return { address: key.address, file };
}

/**
 * Writes the whole file and syncs it, or writes nothing. Half a key file would keep a node from starting, and lose the
 * key. The draft is private from its creation.
 */
export async function writeWhole(directory: string, name: string, text: string): Promise<void> {
  const draft = join(directory, `.${name}.${randomBytes(4).toString("hex")}`);
  const file = await open(draft, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
    await file.close();
    await rename(draft, join(directory, name));
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(draft, { force: true });
    throw error;
  }
  const folder = await open(directory, "r");
  await folder.sync().finally(() => folder.close());
}
