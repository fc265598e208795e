import {
  createCipheriv,
  createDecipheriv,
  pbkdf2,
  randomBytes,
  randomUUID,
  type ScryptOptions,
  scrypt,
} from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { keccak256 } from "viem/utils";
import type { Address } from "../../../domain/lane.ts";
import { codeOf } from "../../../domain/text/thrown.ts";
import { BadKey, parsePrivateKeys, readSecretFile, type SigningKey, toSigningKey, type Warn } from "./private-keys.ts";

const scryptAsync = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt);
const pbkdf2Async = promisify(pbkdf2);

/** Decrypts a Web3 Secret Storage V3 file. `source` names the file in errors. */
export async function decryptKeystore(text: string, password: string, source: string): Promise<SigningKey> {
  const stored = parseKeystore(text, source);
  const key = toSigningKey(await decrypted(stored, password, source), source);
  if (stored.address !== null && stored.address !== key.address) {
    throw new BadKey(`${source}: holds the key of ${key.address}, not of ${stored.address} as it says`);
  }
  return key;
}

/** Scrypt parameters that geth uses by default. */
const STANDARD_SCRYPT = { kdf: "scrypt", n: 262_144, r: 8, p: 1, keyLength: 32 } as const;

/** Writes a V3 file that geth and ethers can open. `n`: scrypt's cost. */
export async function encryptKeystore(
  key: SigningKey,
  password: string,
  n: number = STANDARD_SCRYPT.n,
): Promise<string> {
  const derivation = { ...STANDARD_SCRYPT, n, salt: randomBytes(32) };
  const derived = await deriveKey(derivation, password);
  const iv = randomBytes(16);
  const cipher = createCipheriv(CIPHER, derived.subarray(0, 16), iv);
  const ciphertext = Buffer.concat([cipher.update(key.privateKey), cipher.final()]);
  const { kdf, r, p, keyLength, salt } = derivation;
  const [ivHex, ciphertextHex, saltHex, mac] = [iv, ciphertext, salt, macOf(derived, ciphertext)].map(hexOf);
  const crypto = {
    ...{ cipher: CIPHER, cipherparams: { iv: ivHex }, ciphertext: ciphertextHex },
    ...{ kdf, kdfparams: { n, r, p, dklen: keyLength, salt: saltHex }, mac },
  };
  return JSON.stringify({ address: key.address.slice(2), crypto, id: randomUUID(), version: 3 });
}

const CIPHER = "aes-128-ctr";
const hexOf = (bytes: Buffer) => bytes.toString("hex");

async function decrypted(stored: EncryptedKey, password: string, source: string): Promise<Uint8Array> {
  // Try the password unchanged, then normalised: geth uses the password's bytes, ethers normalises them first (NFKC).
  // The two differ only for passwords with characters outside ASCII.
  for (const candidate of new Set([password, password.normalize("NFKC")])) {
    const derived = await deriveKey(stored.derivation, candidate);
    if (!macOf(derived, stored.ciphertext).equals(stored.mac)) continue;
    const decipher = createDecipheriv(CIPHER, derived.subarray(0, 16), stored.iv);
    return Buffer.concat([decipher.update(stored.ciphertext), decipher.final()]);
  }
  throw new BadKey(`${source}: wrong password, or the file is damaged`);
}

function deriveKey(derivation: KeyDerivation, password: string) {
  const { salt, keyLength } = derivation;
  if (derivation.kdf === "pbkdf2") return pbkdf2Async(password, salt, derivation.rounds, keyLength, "sha256");
  const { n, r, p } = derivation;
  // Raise scrypt's memory limit: Node.js allows 32 MiB by default, but geth's standard parameters (n = 262,144, r = 8)
  // need 256.
  return scryptAsync(password, salt, keyLength, { N: n, r, p, maxmem: 128 * n * r + 1024 * (n + r * p + 1024) });
}

function macOf(derived: Buffer, ciphertext: Uint8Array): Buffer {
  return Buffer.from(keccak256(Buffer.concat([derived.subarray(16, 32), ciphertext]), "bytes"));
}

type EncryptedKey = ReturnType<typeof parseKeystore>;
type KeyDerivation = ReturnType<typeof readDerivation>;

/**
 * Limits on a key file's parameters, so that a file cannot stall the process: scrypt's memory, its time (n × r × p,
 * eight times geth's standard), pbkdf2's rounds.
 */
const MAX_SCRYPT_BYTES = 1024 ** 3;
const MAX_SCRYPT_STEPS = 2 ** 24;
const MAX_PBKDF2_ROUNDS = 10_000_000;

type Fields = Readonly<Record<string, unknown>>;

/** Parses a V3 key file. Every error is one line that names the file and the field. */
export function parseKeystore(text: string, source: string) {
  const read = fieldReader(source);
  // Compare field names in lower case: old files of geth and Parity write "Crypto".
  const entries = Object.entries(parseJson(text, source)).map(([key, value]) => [key.toLowerCase(), value]);
  const file: Fields = Object.fromEntries(entries);
  if (file.version !== 3) throw new BadKey(`${source}: version ${String(file.version)} instead of 3`);
  const crypto = read.object(file, "crypto");
  if (crypto.cipher !== CIPHER) throw new BadKey(`${source}: cipher ${String(crypto.cipher)} is not supported`);
  const ciphertext = read.hex(crypto, "ciphertext");
  if (ciphertext.length !== 32) throw new BadKey(`${source}: ciphertext must be 32 bytes`);
  const iv = read.hex(read.object(crypto, "cipherparams"), "iv");
  if (iv.length !== 16) throw new BadKey(`${source}: iv must be 16 bytes`);
  const derivation = readDerivation(crypto, source);
  return { address: readAddress(file.address, source), derivation, iv, ciphertext, mac: read.hex(crypto, "mac") };
}

function parseJson(text: string, source: string) {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  } catch {
    // Ignore the parse error: invalid JSON and JSON that is not an object get the same error below.
  }
  throw new BadKey(`${source}: is not a JSON object`);
}

/** Reads the address in a key file; null if absent, because the field is optional. */
function readAddress(value: unknown, source: string): Address | null {
  if (value === undefined || value === null || value === "") return null;
  const hex = typeof value === "string" ? /^(?:0x)?([0-9a-f]{40})$/i.exec(value)?.[1] : undefined;
  if (hex === undefined) throw new BadKey(`${source}: address is not an address`);
  return `0x${hex.toLowerCase()}`;
}

function readDerivation(crypto: Fields, source: string) {
  const read = fieldReader(source);
  const params = read.object(crypto, "kdfparams");
  const salt = read.hex(params, "salt");
  const keyLength = read.count(params, "dklen");
  if (keyLength < 32 || keyLength > 128) throw new BadKey(`${source}: dklen must be 32 to 128`);
  if (crypto.kdf === "scrypt") {
    const [n, r, p] = [read.count(params, "n"), read.count(params, "r"), read.count(params, "p")];
    if (128 * r * (n + p) > MAX_SCRYPT_BYTES) throw new BadKey(`${source}: scrypt would need more than 1 GiB`);
    if (n * r * p > MAX_SCRYPT_STEPS) throw new BadKey(`${source}: scrypt's n × r × p is above ${MAX_SCRYPT_STEPS}`);
    // RFC 7914, section 2, requires n below 2^(16 × r), and OpenSSL refuses other values.
    if (Math.log2(n) >= 16 * r) throw new BadKey(`${source}: scrypt's n must be below 2^${16 * r} if r is ${r}`);
    if (!Number.isInteger(Math.log2(n)) || n < 2) throw new BadKey(`${source}: scrypt's n must be a power of two`);
    return { kdf: "scrypt" as const, n, r, p, salt, keyLength };
  }
  if (crypto.kdf !== "pbkdf2") throw new BadKey(`${source}: kdf ${String(crypto.kdf)} is not supported`);
  if (params.prf !== "hmac-sha256") throw new BadKey(`${source}: prf ${String(params.prf)} is not supported`);
  const rounds = read.count(params, "c");
  if (rounds > MAX_PBKDF2_ROUNDS) throw new BadKey(`${source}: more than ${MAX_PBKDF2_ROUNDS} pbkdf2 rounds`);
  return { kdf: "pbkdf2" as const, rounds, salt, keyLength };
}

function fieldReader(source: string) {
  return {
    object(fields: Fields, name: string) {
      const value = fields[name];
      if (typeof value !== "object" || value === null) throw new BadKey(`${source}: ${name} is missing`);
      return value as Fields;
    },
    hex(fields: Fields, name: string): Buffer {
      const value = fields[name];
      const hex = typeof value === "string" ? /^(?:0x)?((?:[0-9a-f]{2})+)$/i.exec(value)?.[1] : undefined;
      if (hex === undefined) throw new BadKey(`${source}: ${name} is not hex`);
      return Buffer.from(hex, "hex");
    },
    count(fields: Fields, name: string) {
      const value = fields[name];
      if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
      throw new BadKey(`${source}: ${name} is not a positive integer`);
    },
  };
}

export interface KeystoreSource {
  readonly directory: string;
  /** File with the one password of all key files. A line break at its end is ignored. */
  readonly passwordFile: string;
}

/**
 * Matches names of key files. geth names them UTC--<time>--<address>, without an extension. Other files, such as a
 * README or the password, are ignored.
 */
const KEY_FILE = /^(UTC--.+|.+\.json)$/i;

/** Reads the password file, without the line break that editors append. */
export async function readPassword(path: string, warn?: Warn): Promise<string> {
  return (await readSecretFile(path, "keystore password file", warn)).replace(/\r?\n$/, "");
}

/**
 * Decrypts every key of the directory. Throws at the first invalid file: a node must not start with half of its
 * signers. Files are decrypted one by one, because each scrypt takes 256 MiB.
 */
export async function loadKeystoreDirectory(source: KeystoreSource, warn?: Warn): Promise<readonly SigningKey[]> {
  const password = await readPassword(source.passwordFile, warn);
  const keys: SigningKey[] = [];
  for (const file of await keyFiles(source.directory)) {
    keys.push(await decryptKeystore(await readSecretFile(file, "keystore file", warn), password, file));
  }
  if (keys.length === 0) throw new BadKey(`${source.directory}: holds no keystore file (UTC--… or *.json)`);
  return keys;
}

export async function keyFiles(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory).catch((cause: unknown) => {
    throw new BadKey(`${directory}: the keystore directory cannot be read (${codeOf(cause) ?? "unknown"})`, { cause });
  });
  const files: string[] = [];
  for (const name of names.filter((each) => KEY_FILE.test(each) && !each.startsWith(".")).sort()) {
    const path = join(directory, name);
    // Use `stat`, which follows links: secrets mounted by Kubernetes are symbolic links.
    if ((await stat(path)).isFile()) files.push(path);
  }
  return files;
}

/** Creates, imports and lists key files for `fencepost keys`. Private keys are never shown. */

export interface StoredKey {
  /** Address of the key; null if the file has no address. */
  readonly address: Address | null;
  readonly file: string;
}

export async function newKey(source: KeystoreSource, now: Date): Promise<StoredKey> {
  // 32 random bytes are an invalid key with a probability of 2^-128, which causes an error.
  return store(source, toSigningKey(randomBytes(32), "the new key"), now);
}

/** Imports a key into the directory. `hex`: the private key as text. */
export async function importKey(source: KeystoreSource, hex: string, now: Date): Promise<StoredKey> {
  const [key] = parsePrivateKeys([hex]) as [SigningKey];
  return store(source, key, now);
}

/** Lists the key files with the addresses that they name. Nothing is decrypted. */
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
  // Name of the new key file, in geth's format.
  const name = `UTC--${now.toISOString().replaceAll(":", "-")}--${key.address.slice(2)}`;
  const file = join(directory, name);
  await writeWhole(directory, name, await encryptKeystore(key, password));
  return { address: key.address, file };
}

/**
 * Writes the whole file and syncs it, or writes nothing. Half a key file would keep a node from starting, and lose the
 * key. The temporary file is readable only by its owner from the start.
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
