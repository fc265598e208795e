/**
 * The search for what a caller may have sent at a nonce whose reservation expired. Nothing of ours is signed there before
 * every look through one more time to live has found nothing.
 */
export interface Search {
  /** Monotonic: the first look and the last one of those in a row that found nothing. */
  readonly sinceMs: number;
  readonly lastMs: number;
}

/** A look was answered. One that was not answered tells nothing, and changes nothing. */
export function looked(search: Search | undefined, found: boolean, atMs: number): Search | undefined {
  return found ? undefined : { sinceMs: search?.sinceMs ?? atMs, lastMs: atMs };
}

/** Looked for as long as the nonce was kept: whoever sent it, sent it too long ago to be on its way still. */
export function isThrough(search: Search | undefined, ttlMs: number): boolean {
  return search !== undefined && search.lastMs - search.sinceMs >= ttlMs;
}
