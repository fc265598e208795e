/**
 * JSON in which a bigint is a string of decimal digits: users of the library may pass a bigint, and other processes
 * read digits.
 */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? each.toString() : each));
}
