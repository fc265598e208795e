/** When something is next done, on the monotonic clock. Once its moment has come it is due, however long ago that was. */
export type When =
  | { readonly kind: "at once" }
  | { readonly kind: "at"; readonly ms: number }
  /** Not until something happens that says otherwise. */
  | { readonly kind: "never" };

export const AT_ONCE: When = { kind: "at once" };
export const NEVER: When = { kind: "never" };

export function at(ms: number): When {
  return { kind: "at", ms };
}

/** After an interval; never where none is set. */
export function afterInterval(nowMs: number, intervalMs: number | null): When {
  return intervalMs === null ? NEVER : at(nowMs + intervalMs);
}

export function isDue(when: When, nowMs: number): boolean {
  return when.kind === "at" ? when.ms <= nowMs : when.kind === "at once";
}
