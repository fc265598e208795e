import { createHash, pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import { english, HDKey } from "viem/accounts";
import { BadKey, type SigningKey, toSigningKey } from "./private-keys.ts";

const LENGTHS: readonly number[] = [12, 15, 18, 21, 24];
const BITS_PER_WORD = 11;
/** Number of PBKDF2 rounds in BIP-39. */
const SEED_ROUNDS = 2_048;

export interface MnemonicSource {
  readonly phrase: string;
  /** Number of accounts to derive, from index 0 on. */
  readonly count: number;
  /** BIP-32 derivation path. The account's index replaces `{index}`, or is appended. */
  readonly path: string;
}

/**
 * Derives the accounts of a mnemonic phrase in the order that wallets use. The phrase's checksum detects a mistyped
 * word.
 */
export async function deriveMnemonicKeys({ phrase, count, path }: MnemonicSource): Promise<readonly SigningKey[]> {
  const words = phrase.normalize("NFKD").trim().toLowerCase().split(/\s+/);
  checkWords(words);
  const seed = await promisify(pbkdf2)(words.join(" "), "mnemonic", SEED_ROUNDS, 64, "sha512");
  const root = HDKey.fromMasterSeed(seed);
  const template = path.includes("{index}") ? path : `${path}/{index}`;
  return Array.from({ length: count }, (_, index) => {
    const { privateKey } = root.derive(template.replaceAll("{index}", String(index)));
    if (privateKey === null) throw new BadKey(`the mnemonic has no account ${index}`);
    return toSigningKey(privateKey, `account ${index} of the mnemonic`);
  });
}

function checkWords(words: readonly string[]) {
  if (!LENGTHS.includes(words.length)) {
    throw new BadKey(`the mnemonic has ${words.length} words; 12, 15, 18, 21 or 24 are possible`);
  }
  const indices = words.map((word) => english.indexOf(word));
  const unknown = indices.indexOf(-1);
  if (unknown !== -1) throw new BadKey(`word ${unknown + 1} of the mnemonic is not in the English BIP-39 list`);
  if (!hasValidChecksum(indices)) throw new BadKey("the mnemonic's checksum is wrong: a word is mistyped or misplaced");
}

/** Checks the phrase (BIP-39): its last bits must be the first bits of the SHA-256 of the other bits. */
function hasValidChecksum(indices: readonly number[]) {
  const bits = indices.map((index) => index.toString(2).padStart(BITS_PER_WORD, "0")).join("");
  const checksumLength = bits.length / 33;
  const entropy = bits.slice(0, -checksumLength).match(/.{8}/g) ?? [];
  const digest = createHash("sha256")
    .update(Uint8Array.from(entropy, (byte) => Number.parseInt(byte, 2)))
    .digest();
  return (digest[0] ?? 0).toString(2).padStart(8, "0").startsWith(bits.slice(-checksumLength));
}
