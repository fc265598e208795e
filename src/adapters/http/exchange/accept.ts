/**
 * True if a header such as `Accept` or `Accept-Encoding` allows the first of these names, or else the next one
 * (RFC 9110, 12.4.2). A quality of zero refuses a name. `names`: the wanted one, then the patterns that include it.
 */
export function accepts(header: string, names: readonly string[]): boolean {
  const given = header.split(",").map((each) => {
    const [name = "", ...parameters] = each.split(";").map((part) => part.trim().toLowerCase());
    const quality = parameters.find((part) => /^q *=/.test(part))?.split("=")[1];
    return [name, quality === undefined ? 1 : Number(quality)] as const;
  });
  const qualities = new Map(given);
  const named = names.find((name) => qualities.has(name));
  return named !== undefined && (qualities.get(named) ?? 0) > 0;
}
