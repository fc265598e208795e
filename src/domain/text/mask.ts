/**
 * Masks secrets in every text that leaves the process: log lines, problem documents, alerts, stored errors, messages of
 * the command line. Errors of other programs quote secrets: a gateway quotes the URL with its key, a driver a
 * connection string, a hook its address. Configured secrets are found by their text; others (credentials in a URL, an
 * Authorization header, a private key) by their shape. Hashes are not masked, nor are words of our own messages
 * (own-words.ts).
 */
import { isOwnWord } from "./own-words.ts";

export type Mask = (text: string) => string;

export const MASK = "***";
/** Minimum length of a secret that is masked wherever its text appears: shorter secrets would match ordinary words. */
const SHORTEST_SECRET = 6;

/** True if a secret is masked wherever its text appears. */
export function isMasked(secret: string): boolean {
  return secret.length >= SHORTEST_SECRET && (KEY.test(secret) || !isOwnWord(secret));
}

/** Creates a mask for these secrets. It matches any casing, and the escaped forms of JSON and URLs. */
export function createMask(secrets: readonly string[]): Mask {
  const forms = secrets.flatMap((secret) => [secret, inUrl(secret), inJson(secret), inJson(inJson(secret))]);
  const usable = [...new Set(forms)].filter(isMasked);
  const keys = usable.filter((form) => KEY.test(form)).map((key) => key.toLowerCase());
  // Sort the secrets, longest first: a secret that contains another is masked as a whole.
  const words = usable.filter((form) => !KEY.test(form)).sort((a, b) => b.length - a.length);
  const masks = [
    ...maskOfWords(words.filter(({ length }) => length > KEY_DIGITS)),
    ...maskOfKeys(new Set(keys)),
    ...maskOfWords(words.filter(({ length }) => length <= KEY_DIGITS)),
    maskOfShapes,
  ];
  return (text) => masks.reduce((masked, mask) => mask(masked), text);
}

/** Maximum depth at which error objects are masked. Members below it are dropped; no real error is that deep. */
const DEEPEST = 8;
const BYTES = /^0x[\da-f]*$/i;

/** Masks every text inside an object, except hex data. */
export function maskTexts(mask: Mask, value: unknown, depth = 0): unknown {
  if (typeof value === "string") return BYTES.test(value) ? value : mask(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEEPEST) return null;
  if (Array.isArray(value)) return value.map((each) => maskTexts(mask, each, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, maskTexts(mask, each, depth + 1)]));
}

const NAME = "(?:key|token|secret|passw(?:or)?d|passphrase|mnemonic|seed)";

/** Regular expressions for the shapes of secrets. Each captures the text before the secret, which is not masked. */
const SHAPES = [
  // Matches user:password@ of a URL, or a token before the @
  String.raw`(:\/\/(?:[^\s/?#"'<>\\:@]{1,128}:(?!@))?)[^\s/?#"'<>\\]{1,512}(?=@)`,
  // Matches Authorization: Bearer …
  String.raw`(\b(?:bearer|basic|fencepost-node)\s{1,4})[\w.~+/=-]{8,}`,
  // Matches ?apiKey=…, password=…
  String.raw`(${NAME}=)[^\s&"'<>\\#]{6,}`,
  // Matches "key": "0x…", 32 bytes, also with escaped quotes
  String.raw`(${NAME}s?[\s"'\\]{0,6}[:=]?[\s"'\\[]{0,6}(?:0x)?)[\da-f]{64}(?![\da-f])`,
  // Matches the secret of a webhook
  String.raw`(whsec_)[\w+/=-]{20,}`,
].map((pattern) => new RegExp(pattern, "gi"));

/** Masks secrets by their shape only. Used before the configuration is read. */
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
 * Private keys are found by looking up runs of hex digits in a set. A node with ten thousand lanes has as many keys,
 * and one regular expression of all of them takes seconds to compile and most of a millisecond per line.
 */
function maskOfKeys(keys: ReadonlySet<string>): readonly Mask[] {
  if (keys.size === 0) return [];
  return [(text) => text.replace(HEX_RUN, (run) => maskRun(run, keys))];
}

/** Masks keys in a run of hex digits. A key may be inside a longer run, such as call data. */
function maskRun(run: string, keys: ReadonlySet<string>) {
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

function inJson(text: string) {
  return JSON.stringify(text).slice(1, -1);
}

/** Encodes a text for a URL. A text with a lone surrogate stays unchanged, because it has no URL encoding. */
function inUrl(text: string) {
  return /\p{Surrogate}/u.test(text) ? text : encodeURIComponent(text);
}
