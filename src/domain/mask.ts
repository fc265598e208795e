/**
 * The one function through which text leaves the process: log lines, problem documents, alerts, what is stored of an error,
 * and the command line's complaints. Others quote what they were asked with: a gateway its URL with the key in it, a
 * driver a connection string, a hook its own address. What is configured as a secret is known by its text; what merely
 * looks like one (credentials in a URL, an Authorization header, a private key) by its shape. Hashes are neither, and our own
 * words are left alone (own-words.ts).
 */
import { isOwnWord } from "./own-words.ts";

export type Mask = (text: string) => string;

export const MASK = "***";
/** Shorter texts would black out ordinary words. */
const SHORTEST_SECRET = 6;

/** It is known by its text, wherever that appears. */
export function isMasked(secret: string): boolean {
  return secret.length >= SHORTEST_SECRET && (KEY.test(secret) || !isOwnWord(secret));
}

/** In any casing, as hex has several, and as JSON or a URL would spell it: the text may be a line or a part of either. */
export function createMask(secrets: readonly string[]): Mask {
  const forms = secrets.flatMap((secret) => [secret, inUrl(secret), inJson(secret), inJson(inJson(secret))]);
  const usable = [...new Set(forms)].filter(isMasked);
  const keys = usable.filter((form) => KEY.test(form)).map((key) => key.toLowerCase());
  // Longest first: a secret that contains another one is masked whole.
  const words = usable.filter((form) => !KEY.test(form)).sort((a, b) => b.length - a.length);
  const masks = [
    ...maskOfWords(words.filter(({ length }) => length > KEY_DIGITS)),
    ...maskOfKeys(new Set(keys)),
    ...maskOfWords(words.filter(({ length }) => length <= KEY_DIGITS)),
    maskOfShapes,
  ];
  return (text) => masks.reduce((masked, mask) => mask(masked), text);
}

/** Deeper than any error object; what lies deeper is dropped. */
const DEEPEST = 8;
const BYTES = /^0x[\da-f]*$/i;

/** Every text inside, but for bytes: the data of a revert is no text yet. */
export function maskTexts(mask: Mask, value: unknown, depth = 0): unknown {
  if (typeof value === "string") return BYTES.test(value) ? value : mask(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEEPEST) return null;
  if (Array.isArray(value)) return value.map((each) => maskTexts(mask, each, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, maskTexts(mask, each, depth + 1)]));
}

const NAME = "(?:key|token|secret|passw(?:or)?d|passphrase|mnemonic|seed)";

/** Each with what stands before the secret, which stays. */
const SHAPES = [
  // user:password@ of a URL, or a token alone in front of the @
  String.raw`(:\/\/(?:[^\s/?#"'<>\\:@]{1,128}:(?!@))?)[^\s/?#"'<>\\]{1,512}(?=@)`,
  // Authorization: Bearer …
  String.raw`(\b(?:bearer|basic|fencepost-node)\s{1,4})[\w.~+/=-]{8,}`,
  // ?apiKey=…, password=…
  String.raw`(${NAME}=)[^\s&"'<>\\#]{6,}`,
  // "key": "0x…", of 32 bytes, also where quotes are escaped
  String.raw`(${NAME}s?[\s"'\\]{0,6}[:=]?[\s"'\\[]{0,6}(?:0x)?)[\da-f]{64}(?![\da-f])`,
].map((pattern) => new RegExp(pattern, "gi"));

/** Knows shapes alone: for text that comes before any configuration is known. */
export const maskOfShapes: Mask = (text) =>
  SHAPES.reduce((masked, shape) => masked.replace(shape, (_, before: string) => `${before}${MASK}`), text);

function maskOfWords(words: readonly string[]): readonly Mask[] {
  if (words.length === 0) return [];
  const pattern = words.map((word) => word.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&")).join("|");
  const expression = new RegExp(pattern, "gi");
  return [(text) => text.replace(expression, MASK)];
}

const KEY_DIGITS = 64;
const KEY = /^[0-9a-f]{64}$/i;
const HEX_RUN = /[0-9a-f]{64,}/gi;

/**
 * Private keys are looked up and not tried one after the other: a node with ten thousand lanes has as many, and an
 * expression of all of them takes seconds to compile and most of a millisecond for every line.
 */
function maskOfKeys(keys: ReadonlySet<string>): readonly Mask[] {
  if (keys.size === 0) return [];
  return [(text) => text.replace(HEX_RUN, (run) => maskRun(run, keys))];
}

/** A key may stand anywhere in a longer run of digits, as in the data of a call. */
function maskRun(run: string, keys: ReadonlySet<string>): string {
  const digits = run.toLowerCase();
  let masked = "";
  let kept = 0;
  for (let at = 0; at + KEY_DIGITS <= run.length; ) {
    if (keys.has(digits.slice(at, at + KEY_DIGITS))) {
      masked += run.slice(kept, at) + MASK;
      at += KEY_DIGITS;
      kept = at;
    } else at++;
  }
  return kept === 0 ? run : masked + run.slice(kept);
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** A lone surrogate has no such spelling. */
function inUrl(text: string): string {
  return /\p{Surrogate}/u.test(text) ? text : encodeURIComponent(text);
}
