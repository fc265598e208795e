import type { Address } from "../../../domain/lane.ts";
import { BadKey } from "./errors.ts";

export type KeyDerivation = { readonly salt: Uint8Array; readonly keyLength: number } & (
  | { readonly kdf: "scrypt"; readonly n: number; readonly r: number; readonly p: number }
  | { readonly kdf: "pbkdf2"; readonly rounds: number }
);

export interface EncryptedKey {
  /** What the file says; null where it does not (the field is optional). */
  readonly address: Address | null;
  readonly derivation: KeyDerivation;
  readonly iv: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly mac: Buffer;
}

/**
 * Beyond this a file is a way to stop the process, not to keep a key: scrypt's memory, its time (n × r × p, eight times
 * what geth's standard files take), pbkdf2's rounds.
 */
const MAX_SCRYPT_BYTES = 1024 ** 3;
const MAX_SCRYPT_STEPS = 2 ** 24;
const MAX_PBKDF2_ROUNDS = 10_000_000;

type Fields = Readonly<Record<string, unknown>>;

/** Reads a V3 file; every mistake is one line that names the file and the field. */
export function parseKeystore(text: string, source: string): EncryptedKey {
  const read = fieldReader(source);
  const file = lowerCaseKeys(parseJson(text, source));
  if (file.version !== 3) throw new BadKey(`${source}: version ${String(file.version)} instead of 3`);
  const crypto = read.object(file, "crypto");
  if (crypto.cipher !== "aes-128-ctr") throw new BadKey(`${source}: cipher ${String(crypto.cipher)} is not supported`);
  const ciphertext = read.hex(crypto, "ciphertext");
  if (ciphertext.length !== 32) throw new BadKey(`${source}: ciphertext must be 32 bytes`);
  const iv = read.hex(read.object(crypto, "cipherparams"), "iv");
  if (iv.length !== 16) throw new BadKey(`${source}: iv must be 16 bytes`);
  return {
    address: readAddress(file.address, source),
    derivation: readDerivation(crypto, source),
    iv,
    ciphertext,
    mac: read.hex(crypto, "mac"),
  };
}

function parseJson(text: string, source: string): Fields {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  } catch {
    // Refused below: text that is not JSON, and JSON that is not an object, are the same mistake.
  }
  throw new BadKey(`${source}: is not a JSON object`);
}

/** Old geth and parity files write "Crypto". */
function lowerCaseKeys(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key.toLowerCase(), value]));
}

function readAddress(value: unknown, source: string): Address | null {
  if (value === undefined || value === null || value === "") return null;
  const hex = typeof value === "string" ? /^(?:0x)?([0-9a-f]{40})$/i.exec(value)?.[1] : undefined;
  if (hex === undefined) throw new BadKey(`${source}: address is not an address`);
  return `0x${hex.toLowerCase()}`;
}

function readDerivation(crypto: Fields, source: string): KeyDerivation {
  const read = fieldReader(source);
  const params = read.object(crypto, "kdfparams");
  const salt = read.hex(params, "salt");
  const keyLength = read.count(params, "dklen");
  if (keyLength < 32 || keyLength > 128) throw new BadKey(`${source}: dklen must be 32 to 128`);
  if (crypto.kdf === "scrypt") {
    const [n, r, p] = [read.count(params, "n"), read.count(params, "r"), read.count(params, "p")];
    if (128 * r * (n + p) > MAX_SCRYPT_BYTES) throw new BadKey(`${source}: scrypt would need more than 1 GiB`);
    if (n * r * p > MAX_SCRYPT_STEPS) throw new BadKey(`${source}: scrypt's n × r × p is above ${MAX_SCRYPT_STEPS}`);
    // RFC 7914 section 2 demands it, and OpenSSL refuses anything else.
    if (Math.log2(n) >= 16 * r) throw new BadKey(`${source}: scrypt's n must be below 2^${16 * r} where r is ${r}`);
    if (!Number.isInteger(Math.log2(n)) || n < 2) throw new BadKey(`${source}: scrypt's n must be a power of two`);
    return { kdf: "scrypt", n, r, p, salt, keyLength };
  }
  if (crypto.kdf !== "pbkdf2") throw new BadKey(`${source}: kdf ${String(crypto.kdf)} is not supported`);
  if (params.prf !== "hmac-sha256") throw new BadKey(`${source}: prf ${String(params.prf)} is not supported`);
  const rounds = read.count(params, "c");
  if (rounds > MAX_PBKDF2_ROUNDS) throw new BadKey(`${source}: more than ${MAX_PBKDF2_ROUNDS} pbkdf2 rounds`);
  return { kdf: "pbkdf2", rounds, salt, keyLength };
}

function fieldReader(source: string) {
  return {
    object(fields: Fields, name: string): Fields {
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
    count(fields: Fields, name: string): number {
      const value = fields[name];
      if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
      throw new BadKey(`${source}: ${name} is not a positive integer`);
    },
  };
}
