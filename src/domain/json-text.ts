/** Inside the library a face value may be a bigint; between processes it is its decimal digits, which mean the same. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? each.toString() : each));
}
