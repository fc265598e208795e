import { parseAbi } from "viem/utils";

/** Types that the structs of an ABI may have altogether, once every struct is written out where it is used. */
const MOST_MEMBERS = 10_000;

/**
 * Parses an ABI of human-readable lines. viem writes every struct out where it is used, so that forty short lines, each
 * with the struct before it twice, would keep it busy for ever. They are refused.
 */
export function parseSignatures(lines: readonly string[]): readonly unknown[] {
  const bodies = new Map<string, readonly string[]>();
  for (const line of lines) {
    const [, name, body = ""] = /^\s*struct\s+([\w$]+)\s*\{([\s\S]*)$/.exec(line) ?? [];
    if (name !== undefined) bodies.set(name, wordsOf(body));
  }
  const sizes = new Map<string, number>();
  const sizeOf = (name: string): number => {
    const known = sizes.get(name);
    if (known !== undefined) return known;
    // A struct that contains itself counts once here; the parser refuses it.
    sizes.set(name, 1);
    const size = sum(bodies.get(name) ?? [], sizeOf);
    sizes.set(name, size);
    return size;
  };
  if (bodies.size > 0 && sum(lines.flatMap(wordsOf), sizeOf) > MOST_MEMBERS)
    throw new Error("its structs are too large: give the ABI as JSON");
  return parseAbi(lines);
}

function wordsOf(text: string): readonly string[] {
  return text.match(/[\w$]+/g) ?? [];
}

function sum(words: readonly string[], sizeOf: (word: string) => number) {
  return words.reduce((total, word) => total + Math.max(1, sizeOf(word)), 0);
}
