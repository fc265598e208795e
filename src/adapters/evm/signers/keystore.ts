import { createDecipheriv, pbkdf2, type ScryptOptions, scrypt } from "node:crypto";
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
