const MASK = "***";
/** Shorter texts would black out ordinary words, and are no secrets. */
const SHORTEST_SECRET = 6;

/**
 * Replaces every occurrence of the given texts in a line of JSON, in any casing (hex has several). An error message of a
 * library may quote a connection string; this is what keeps its password out of the log.
 */
export function createSecretMask(secrets: readonly string[]): Mask {
  return maskOf(secrets.map(insideJson));
}

/** The same for text that is no JSON. */
export function createTextMask(secrets: readonly string[]): Mask {
  return maskOf(secrets);
}

type Mask = (text: string) => string;

/** Longest first: a secret that contains another one is masked whole. */
function maskOf(forms: readonly string[]): Mask {
  const usable = [...new Set(forms)].filter((form) => form.length >= SHORTEST_SECRET);
  const keys = usable.filter((form) => KEY.test(form)).map((key) => key.toLowerCase());
  const words = usable.filter((form) => !KEY.test(form)).sort((a, b) => b.length - a.length);
  const masks = [
    ...maskOfWords(words.filter(({ length }) => length > KEY_DIGITS)),
    ...maskOfKeys(new Set(keys)),
    ...maskOfWords(words.filter(({ length }) => length <= KEY_DIGITS)),
  ];
  return (text) => masks.reduce((masked, mask) => mask(masked), text);
}

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

function insideJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
