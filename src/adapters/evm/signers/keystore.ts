import {
  createCipheriv,
  createDecipheriv,
  pbkdf2,
  randomBytes,
  randomUUID,
  type ScryptOptions,
  scrypt,
} from "node:crypto";
import { promisify } from "node:util";
import { keccak256 } from "viem/utils";
import { BadKey } from "./errors.ts";
import { type EncryptedKey, type KeyDerivation, parseKeystore } from "./keystore-format.ts";
import { type SigningKey, toSigningKey } from "./private-keys.ts";

const scryptAsync = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt);
const pbkdf2Async = promisify(pbkdf2);

/** Opens a Web3 Secret Storage V3 file. `source` names the file in errors. */
export async function decryptKeystore(text: string, password: string, source: string): Promise<SigningKey> {
  const stored = parseKeystore(text, source);
  const key = toSigningKey(await open(stored, password, source), source);
  if (stored.address !== null && stored.address !== key.address) {
    throw new BadKey(`${source}: holds the key of ${key.address}, not of ${stored.address} as it says`);
  }
  return key;
}

async function open(stored: EncryptedKey, password: string, source: string): Promise<Uint8Array> {
  // geth takes the password's bytes as they are, ethers normalises them: they differ beyond ASCII alone.
  for (const candidate of new Set([password, password.normalize("NFKC")])) {
    const derived = await deriveKey(stored.derivation, candidate);
    if (!macOf(derived, stored.ciphertext).equals(stored.mac)) continue;
    const decipher = createDecipheriv("aes-128-ctr", derived.subarray(0, 16), stored.iv);
    return Buffer.concat([decipher.update(stored.ciphertext), decipher.final()]);
  }
  throw new BadKey(`${source}: wrong password, or the file is damaged`);
}

function deriveKey(derivation: KeyDerivation, password: string): Promise<Buffer> {
  const { salt, keyLength } = derivation;
  if (derivation.kdf === "pbkdf2") return pbkdf2Async(password, salt, derivation.rounds, keyLength, "sha256");
  const { n, r, p } = derivation;
  // Node allows 32 MiB unless told otherwise; the usual parameters (n = 262,144, r = 8) need 256.
  return scryptAsync(password, salt, keyLength, { N: n, r, p, maxmem: 128 * n * r + 1024 * (n + r * p + 1024) });
}

function macOf(derived: Buffer, ciphertext: Uint8Array): Buffer {
  return Buffer.from(keccak256(Buffer.concat([derived.subarray(16, 32), ciphertext]), "bytes"));
}

export interface EncryptOptions {
  readonly kdf?: "scrypt" | "pbkdf2";
  /** scrypt's n, or pbkdf2's rounds. */
  readonly cost?: number;
}

/** The same format for new keys, with geth's default costs. */
export async function encryptKeystore(
  key: SigningKey,
  password: string,
  options: EncryptOptions = {},
): Promise<string> {
  const derivation = newDerivation(options);
  const derived = await deriveKey(derivation, password);
  const iv = randomBytes(16);
  const cipher = createCipheriv("aes-128-ctr", derived.subarray(0, 16), iv);
  const ciphertext = Buffer.concat([cipher.update(key.privateKey), cipher.final()]);
  const crypto = {
    cipher: "aes-128-ctr",
    cipherparams: { iv: iv.toString("hex") },
    ciphertext: ciphertext.toString("hex"),
    kdf: derivation.kdf,
    kdfparams: kdfParams(derivation),
    mac: macOf(derived, ciphertext).toString("hex"),
  };
  return JSON.stringify({ version: 3, id: randomUUID(), address: key.address.slice(2), crypto });
}

function newDerivation({ kdf = "scrypt", cost }: EncryptOptions): KeyDerivation {
  const common = { salt: randomBytes(32), keyLength: 32 };
  return kdf === "scrypt"
    ? { kdf, n: cost ?? 262_144, r: 8, p: 1, ...common }
    : { kdf, rounds: cost ?? 262_144, ...common };
}

function kdfParams(derivation: KeyDerivation): Record<string, string | number> {
  const common = { dklen: derivation.keyLength, salt: Buffer.from(derivation.salt).toString("hex") };
  return derivation.kdf === "scrypt"
    ? { n: derivation.n, r: derivation.r, p: derivation.p, ...common }
    : { c: derivation.rounds, prf: "hmac-sha256", ...common };
}
