/** Of an origin, as `https://node-*.relay.internal:3000`. A star stands for a part of a name, an address or a port: never for a dot. */
export const URL_PATTERN = /^https?:\/\/[\w*.:[\]-]+$/;

/** Whether a node may be there. Without patterns it may be anywhere. */
export function mayBeAt(origin: string, patterns: readonly string[] | null): boolean {
  return patterns === null || patterns.some((pattern) => expressionOf(pattern).test(origin));
}

/** `10.0.0.*` must not be true of `10.0.0.evil.example`. */
function expressionOf(pattern: string): RegExp {
  const literal = pattern.replace(/[.[\]]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll("*", "[^./]+")}$`, "i");
}
