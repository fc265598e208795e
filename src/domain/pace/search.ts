/**
 * Search for a caller's transaction at a nonce whose reservation expired. A placeholder is signed there only after
 * every look during one more reservation time has found nothing.
 */
export interface Search {
  /** Monotonic times of the first and the last look in a row that found nothing. */
  readonly sinceMs: number;
  readonly lastMs: number;
}

/** A look was answered. A look without an answer changes nothing. */
export function looked(search: Search | undefined, found: boolean, atMs: number): Search | undefined {
  return found ? undefined : { sinceMs: search?.sinceMs ?? atMs, lastMs: atMs };
}

/** The search lasted as long as the reservation: a transaction sent before is no longer in flight. */
export function isThrough(search: Search | undefined, ttlMs: number): boolean {
  return search !== undefined && search.lastMs - search.sinceMs >= ttlMs;
}
