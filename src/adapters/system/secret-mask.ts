const MASK = "***";
/** Shorter texts would black out ordinary words, and are no secrets. */
const SHORTEST_SECRET = 6;

/**
 * Replaces every occurrence of the given texts in a line of JSON, in any casing (hex has several). An error message of a
 * library may quote a connection string; this is what keeps its password out of the log.
 */
export function createSecretMask(secrets: readonly string[]): (text: string) => string {
  return maskOf(secrets.map(insideJson));
}

/** The same for text that is no JSON. */
export function createTextMask(secrets: readonly string[]): (text: string) => string {
  return maskOf(secrets);
}

function maskOf(forms: readonly string[]): (text: string) => string {
  const usable = [...new Set(forms)].filter((form) => form.length >= SHORTEST_SECRET);
  if (usable.length === 0) return (text) => text;
  // Longest first: a secret that contains another one is masked whole.
  const pattern = usable
    .sort((a, b) => b.length - a.length)
    .map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"))
    .join("|");
  const expression = new RegExp(pattern, "gi");
  return (text) => text.replace(expression, MASK);
}

function insideJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
