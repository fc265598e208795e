/**
 * Personal messages that no rule can allow, and the text of the others. `personal_sign` puts a prefix before the bytes,
 * so that they are neither a transaction nor a digest. These checks hold although the prefix protects: some contracts
 * and wallets verify signatures without it, and a message that reads differently from its bytes misleads an auditor.
 */
import type { Hex } from "../lane.ts";

const DIGEST_BYTES = 32;
/**
 * Control and format characters, direction marks, private use, separators of lines, and letters without a shape: those
 * that renderers ignore by default (Unicode, DerivedCoreProperties), such as a Hangul filler, and the empty Braille cell.
 */
const MISLEADING = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;

export type PersonalText = { readonly text: string } | { readonly rule: string; readonly detail: string };

/** The text of a personal message, or why it is never signed. */
export function personalText(bytes: Hex): PersonalText {
  const content = Buffer.from(bytes.slice(2), "hex");
  if (content.length === 0) return never("empty", "has no bytes");
  if (content.length === DIGEST_BYTES) return never("digest", "has exactly 32 bytes, so it may be a digest");
  if (isRlpList(content)) return never("transaction", "is an RLP list, so it may be a transaction");
  const [first = 0, second = 0] = content;
  // EIP-2718 envelopes, EIP-7702 authorisations (0x05), and the version bytes of EIP-191 are followed by RLP or bytes.
  if (first < 0x09 && second >= 0xc0)
    return never("transaction", "begins like a typed transaction or an authorisation");
  if (first === 0x19) return never("prefix", "begins with the prefix of signed data (EIP-191)");
  const text = decoded(content);
  if (text === null) return never("text", "is not well-formed UTF-8");
  if (MISLEADING.test(text.replaceAll("\n", "")))
    return never("text", "has control characters, direction marks or invisible characters");
  return { text };
}

function never(rule: string, what: string) {
  return { rule, detail: `the message ${what}: it is never signed` };
}

function decoded(content: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return null;
  }
}

/** True if the bytes are one RLP list with nothing after it. */
function isRlpList(content: Uint8Array): boolean {
  const [first = 0] = content;
  if (first < 0xc0) return false;
  if (first <= 0xf7) return content.length === 1 + first - 0xc0;
  const digits = first - 0xf7;
  const length = content.subarray(1, 1 + digits).reduce((sum, byte) => sum * 256 + byte, 0);
  return content.length === 1 + digits + length;
}
