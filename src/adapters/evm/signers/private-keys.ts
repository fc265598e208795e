import { createECDH } from "node:crypto";
import { constants } from "node:fs";
import { access, open, readFile } from "node:fs/promises";
import { keccak256 } from "viem/utils";
import type { Address } from "../../../domain/lane.ts";
import { codeOf } from "../../../domain/text/thrown.ts";
import { toHex } from "./worker/serialise.js";

/** An unusable key. The message names its source, never the key. */
export class BadKey extends Error {
  override readonly name = "BadKey";
}

/** A private key with its address. */
export type SigningKey = ReturnType<typeof toSigningKey>;

const KEY_PATTERN = /^(0x)?([0-9a-f]{64})$/i;
const KEY_LENGTH = 32;
const ADDRESS_LENGTH = 20;

/**
 * Parses private keys in hex, with or without prefix. Errors name only the source and the position, because the text
 * may be a secret.
 */
export function parsePrivateKeys(texts: readonly string[], place = ""): readonly SigningKey[] {
  return texts.map((text, index) => {
    const source = `${place}private key ${index + 1}`;
    const hex = KEY_PATTERN.exec(text.trim())?.[2];
    if (hex === undefined) throw new BadKey(`${source} is not 32 bytes of hex`);
    const bytes = Buffer.from(hex, "hex");
    try {
      return toSigningKey(bytes, source);
    } finally {
      // Clear the key's bytes: Node.js reuses memory of its pool for other small buffers without clearing it.
      bytes.fill(0);
    }
  });
}

/**
 * Makes a signing key. Refuses a key that is zero or not below the group order; `source` names the key in that error.
 */
export function toSigningKey(privateKey: Uint8Array, source: string) {
  const publicKey = publicKeyOf(privateKey);
  if (publicKey === null) throw new BadKey(`${source} is not a valid secp256k1 key`);
  const address = addressOf(publicKey);
  // Copy the key out of Node.js's buffer pool: sending a pooled buffer to the worker would also send neighbouring
  // bytes.
  return { address, privateKey: Uint8Array.from(privateKey) };
}

/** Address of a public key. `publicKey`: 65 bytes, uncompressed; the first byte is the format. */
export function addressOf(publicKey: Uint8Array): Address {
  return toHex(keccak256(publicKey.subarray(1), "bytes").subarray(-ADDRESS_LENGTH));
}

/**
 * Computes the public key with OpenSSL: viem first computes tables for the curve, which takes longer than all keys of a
 * node.
 */
function publicKeyOf(privateKey: Uint8Array): Buffer | null {
  const curve = createECDH("secp256k1");
  // Check the length here, because OpenSSL would accept fewer bytes.
  if (privateKey.length !== KEY_LENGTH) return null;
  try {
    curve.setPrivateKey(privateKey);
  } catch {
    return null;
  }
  return curve.getPublicKey();
}

/** Receives a warning about a secret file whose permissions this process cannot change. */
export type Warn = (line: string) => void;

/** Permission bits with which the group or other users may read or write a file. */
const OPEN_TO_OTHERS = 0o066;

/** Reads a file with a key or a password. `what` names the file in errors. */
export async function readSecretFile(path: string, what: string, warn: Warn = () => undefined): Promise<string> {
  const unreadable = refusing(path, what);
  // Read permissions and contents through one handle, so that both belong to the same file.
  const file = await open(path, "r").catch(unreadable);
  try {
    const { uid, mode } = await file.stat();
    const judgement = judgeOpenness({ uid, mode, ownUid: process.getuid?.(), readOnly: await isReadOnly(path) });
    const octal = (mode & 0o777).toString(8).padStart(4, "0");
    const said = `${path}: the ${what} is open to other users of this machine (mode ${octal})`;
    if (judgement === "refused") throw new BadKey(`${said}; make it yours alone: chmod 600 ${path}`);
    if (judgement === "warned")
      warn(`${said}; it belongs to somebody else, or is mounted read-only, and is used all the same`);
    return await file.readFile("utf8").catch(unreadable);
  } finally {
    await file.close();
  }
}

/** Reads a file that contains no secret. */
export async function readWhole(path: string, what: string): Promise<string> {
  return readFile(path, "utf8").catch(refusing(path, what));
}

function refusing(path: string, what: string): (cause: unknown) => never {
  return (cause) => {
    throw new BadKey(`${path}: the ${what} cannot be read (${codeOf(cause) ?? "unknown"})`, { cause });
  };
}

export interface Openness {
  readonly uid: number;
  readonly mode: number;
  /** User id of this process; undefined on systems without user ids (Windows). */
  readonly ownUid: number | undefined;
  /** True if the file is on a file system that is mounted read-only. */
  readonly readOnly: boolean;
}

/**
 * Checks the permissions of a key file. ssh refuses a key that other users can read. Secrets mounted by Kubernetes and
 * Docker are readable by others (0644 or 0444, owned by root, read-only), and the container cannot change that. So bad
 * permissions are refused if this process could change them; otherwise they cause a warning. A file that others may
 * write is refused unless it is on a read-only mount.
 */
export function judgeOpenness({ uid, mode, ownUid, readOnly }: Openness): "fine" | "warned" | "refused" {
  if (ownUid === undefined || (mode & OPEN_TO_OTHERS) === 0) return "fine";
  if (readOnly) return "warned";
  return uid === ownUid || (mode & 0o022) !== 0 ? "refused" : "warned";
}

async function isReadOnly(path: string) {
  return access(path, constants.W_OK).then(
    () => false,
    (error: unknown) => codeOf(error) === "EROFS",
  );
}
