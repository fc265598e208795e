/** JSON with a bigint as its decimal digits: the library accepts a bigint, and other processes read digits. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? each.toString() : each));
}
