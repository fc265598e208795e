/**
 * Pattern of an origin, such as `https://node-*.relay.internal:3000`. A star matches part of a name, an address or a
 * port, but never a dot.
 */
export const URL_PATTERN = /^https?:\/\/[\w*.:[\]-]+$/;

/** True if a node may have this origin. Without patterns every origin is allowed. */
export function mayBeAt(origin: string, patterns: readonly string[] | null): boolean {
  return patterns === null || patterns.some((pattern) => expressionOf(pattern).test(origin));
}

/** Regular expression of a pattern. The star excludes dots, so that `10.0.0.*` does not match `10.0.0.evil.example`. */
function expressionOf(pattern: string) {
  const literal = pattern.replace(/[.[\]]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll("*", "[^./]+")}$`, "i");
}
