import { createCipheriv, pbkdf2Sync, randomBytes, randomUUID, scryptSync } from "node:crypto";
import { keccak256 } from "viem/utils";
import type { SigningKey } from "../../src/adapters/evm/signers/private-keys.ts";

/**
 * Writes a Web3 Secret Storage V3 file as wallets do. `cost` is scrypt's n or pbkdf2's rounds; geth's value by default.
 */
export function encryptKeystore(
  key: SigningKey,
  password: string,
  { kdf = "scrypt", cost = 262_144 }: { readonly kdf?: "scrypt" | "pbkdf2"; readonly cost?: number } = {},
): string {
  const salt = randomBytes(32);
  const derived =
    kdf === "scrypt"
      ? scryptSync(password, salt, 32, { N: cost, r: 8, p: 1, maxmem: 2_048 * cost })
      : pbkdf2Sync(password, salt, cost, 32, "sha256");
  const iv = randomBytes(16);
  const cipher = createCipheriv("aes-128-ctr", derived.subarray(0, 16), iv);
  const ciphertext = Buffer.concat([cipher.update(key.privateKey), cipher.final()]);
  const common = { dklen: 32, salt: salt.toString("hex") };
  const crypto = {
    cipher: "aes-128-ctr",
    cipherparams: { iv: iv.toString("hex") },
    ciphertext: ciphertext.toString("hex"),
    kdf,
    kdfparams: kdf === "scrypt" ? { n: cost, r: 8, p: 1, ...common } : { c: cost, prf: "hmac-sha256", ...common },
    mac: keccak256(Buffer.concat([derived.subarray(16, 32), ciphertext])).slice(2),
  };
  return JSON.stringify({ version: 3, id: randomUUID(), address: key.address.slice(2), crypto });
}
