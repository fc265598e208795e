/** Message of any thrown value: libraries also throw values that are no `Error`. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** `code` of an error of Node, undici or a driver, such as ECONNREFUSED; null if it has none. */
export function codeOf(thrown: unknown): string | null {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : null;
}
